use clap::Command;
use clap_complete::env::{Bash, EnvCompleter};
use std::ffi::OsString;
use std::io::{Result, Write};
use std::path::Path;

/// Completions of bash, which breaks words at `=` and `:`: `cc=re` comes as three, and only the last of them may be completed.
///
/// What clap writes takes each for an argument. Around it stands a function that puts them together, and takes off the candidates what
/// bash doesn't replace.
///
/// # Source
/// `COMP_WORDBREAKS` in bash(1); a word of `=` or `:` alone that the cursor is on comes with an empty second argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BashCompletion;

/// `INNER` is clap's function, `BIN` the program, `NAME` its name in those of functions.
const WHOLE_WORDS: &str = r#"
_whole_words_NAME() {
    local -a whole=()
    local at word before='' joins=0
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        before=''
        if ((at > 1)) && [[ $joins = 1 || $word =~ ^[=:]+$ ]]; then
            before=${whole[${#whole[@]}-1]}
            whole[${#whole[@]}-1]+=$word
        else
            whole+=("$word")
        fi
        if [[ $word =~ ^[=:]+$ ]]; then joins=1; else joins=0; fi
    done
    if [[ $joins = 1 && -z $2 ]]; then before=${whole[${#whole[@]}-1]}; fi
    local -a COMP_WORDS=("${whole[@]}")
    local COMP_CWORD=$((${#whole[@]} - 1))
    INNER "$1" "$before$2" "$3"
    for at in "${!COMPREPLY[@]}"; do COMPREPLY[at]=${COMPREPLY[at]#"$before"}; done
}
complete -o nospace -o bashdefault -F _whole_words_NAME BIN
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _whole_words_NAME BIN
fi
"#;

impl EnvCompleter for BashCompletion {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(&self, var: &str, name: &str, bin: &str, completer: &str, buf: &mut dyn Write) -> Result<()> {
        Bash.write_registration(var, name, bin, completer, buf)?;
        let name = name.replace('-', "_");
        let inner = format!("_clap_complete_{name}");
        buf.write_all(WHOLE_WORDS.replace("INNER", &inner).replace("NAME", &name).replace("BIN", bin).as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<()> {
        Bash.write_complete(cmd, args, current_dir, buf)
    }
}
