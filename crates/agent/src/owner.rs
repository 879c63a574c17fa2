//! What a fleet's owner asks: make it, take hosts in, say what is measured, see how it stands.

use crate::mesh::Mesh;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wt_fleet::{FleetAdmin, FleetError, FleetState, RunLine};
use wt_problem::Problem;
use wt_setup::journal::store_address;

/// Which fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetRequest {
    /// Its server, as its owner: `postgresql://USER@HOST/DATABASE`.
    pub server: String,
}

/// Who comes into the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetAddRequest {
    /// The fleet's server.
    pub server: String,
    /// What the host is called: its role, its certificate's name, its site.
    pub host: String,
}

/// What is to be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetRunRequest {
    /// The fleet's server.
    pub server: String,
    /// The mesh's file.
    pub file: PathBuf,
    /// Only say what it comes to.
    pub dry_run: bool,
}

/// Which mesh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeshRequest {
    /// The fleet's server.
    pub server: String,
    /// Its name; nothing means all.
    pub mesh: Option<String>,
    /// Every time that it ran, instead of the newest only.
    pub all: bool,
}

/// A fleet is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetInitAnswer {
    /// 1.
    pub schema_version: u32,
    /// Its server, without a password.
    pub server: String,
}

/// A host is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetAddAnswer {
    /// 1.
    pub schema_version: u32,
    /// What it is called.
    pub host: String,
    /// Whether it is new.
    pub is_new: bool,
    /// What stands in the server's `pg_hba.conf`.
    pub hba: String,
    /// What makes its key and certificate, where the authority's are.
    pub certificate: Vec<String>,
    /// Its `agent.toml`.
    pub policy: String,
}

/// A mesh is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetRunAnswer {
    /// 1.
    pub schema_version: u32,
    /// What it is called.
    pub mesh: String,
    /// How many pairs it has.
    pub jobs: usize,
    /// Whether that was only a question.
    pub dry_run: bool,
}

/// How a fleet stands.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct FleetStatusAnswer {
    /// 1.
    pub schema_version: u32,
    /// Its server, without a password; nothing where it is one host's journal that was asked.
    pub server: Option<String>,
    /// All of it.
    #[serde(flatten)]
    pub state: FleetState,
}

/// What was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetStopAnswer {
    /// 1.
    pub schema_version: u32,
    /// So many pairs.
    pub stopped: u64,
}

/// Makes a fleet of a database, or brings it up to date.
///
/// # Errors
/// A [`Problem`].
pub fn init(request: &FleetRequest) -> Result<FleetInitAnswer, Problem> {
    let address = store_address(&request.server)?;
    FleetAdmin::install(&address).map_err(|error| problem(&error))?;
    Ok(FleetInitAnswer { schema_version: 1, server: address.to_string() })
}

/// Takes a host in.
///
/// # Errors
/// A [`Problem`].
pub fn add(request: &FleetAddRequest) -> Result<FleetAddAnswer, Problem> {
    let host = request.host.as_str();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if host.is_empty()
        || host.len() > 60
        || !host.chars().all(allowed)
        || host.starts_with("pg_")
        || ["public", "none", wt_fleet::AGENT_ROLE].contains(&host)
    {
        return Err(Problem::usage(format!("\"{host}\" is no name of an agent"))
            .hint("lower-case letters, digits, - _ and . such as berlin-1: it is a role of PostgreSQL and a certificate's name"));
    }
    let address = store_address(&request.server)?;
    let is_new = connected(&request.server)?.add(host).map_err(|error| problem(&error))?;
    let (place, database) = address.place();
    Ok(FleetAddAnswer {
        schema_version: 1,
        host: host.to_owned(),
        is_new,
        hba: format!("hostssl {database} +{} all cert", wt_fleet::AGENT_ROLE),
        certificate: vec![
            format!("openssl req -new -newkey rsa:3072 -nodes -keyout {host}.key -out {host}.csr -subj /CN={host}"),
            // Without an extension OpenSSL before 3.2 makes one of version 1, which TLS takes nowhere here.
            format!("printf 'basicConstraints=CA:FALSE\\nextendedKeyUsage=clientAuth\\n' > {host}.ext"),
            format!(
                "openssl x509 -req -in {host}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile {host}.ext \
                 -out {host}.crt"
            ),
        ],
        policy: format!(
            "server = \"postgresql://{host}@{place}/{database}?sslrootcert=/etc/windtunnel/ca.crt\
             &sslcert=/etc/windtunnel/agent.crt&sslkey=/run/credentials/windtunnel-agent.service/secret_agent.key\"\n\
             # Nothing is measured until you name what may be.\n\
             targets = []\n\
             bytes_a_day = \"2GB\"\n\
             host_wide = false\n"
        ),
    })
}

/// Writes a mesh down; agents do it when they ask next.
///
/// # Errors
/// A usage [`Problem`] for what is wrong with it.
pub fn run(request: &FleetRunRequest) -> Result<FleetRunAnswer, Problem> {
    let file = request.file.display();
    let text = wt_sys::file::read_text(&request.file)
        .map_err(|error| Problem::usage(format!("{file}: {error}")).hint("name the mesh, a file of TOML"))?;
    let mesh = Mesh::parse(&text).map_err(|why| {
        Problem::usage(format!("{file}: {}", why.trim_end())).hint(
            "a mesh is name = \"north\" and for each group [[measure]] with from = [AGENT, …], to = [SERVER, …], and maybe links, every = \"6h\", within, with; correct it and try it with --dry-run",
        )
    })?;
    let jobs = mesh.jobs().map_err(Problem::internal)?;
    let mut admin = connected(&request.server)?;
    match request.dry_run {
        true => admin.knows(&jobs).map_err(|error| problem(&error))?,
        false => drop(admin.run(&mesh.name, &jobs).map_err(|error| problem(&error))?),
    }
    Ok(FleetRunAnswer { schema_version: 1, mesh: mesh.name, jobs: jobs.len(), dry_run: request.dry_run })
}

/// How a fleet stands.
///
/// # Errors
/// A [`Problem`].
pub fn status(request: &FleetRequest) -> Result<FleetStatusAnswer, Problem> {
    let state = connected(&request.server)?.state().map_err(|error| problem(&error))?;
    Ok(FleetStatusAnswer { schema_version: 1, server: Some(store_address(&request.server)?.to_string()), state })
}

/// Stops a mesh, or all of them.
///
/// # Errors
/// A [`Problem`]; a usage one where there is no such mesh.
pub fn stop(request: &MeshRequest) -> Result<FleetStopAnswer, Problem> {
    let mut admin = connected(&request.server)?;
    let mesh = request.mesh.as_deref();
    let stopped = admin.stop(mesh).map_err(|error| problem(&error))?;
    if let (0, Some(mesh)) = (stopped, mesh) {
        known(&mut admin, mesh)?;
    }
    Ok(FleetStopAnswer { schema_version: 1, stopped })
}

/// Sees to it that there is a mesh of this name.
fn known(admin: &mut FleetAdmin, mesh: &str) -> Result<(), Problem> {
    let all = admin.meshes().map_err(|error| problem(&error))?;
    if all.iter().any(|known| known == mesh) {
        return Ok(());
    }
    let problem = Problem::usage(format!("no mesh of the fleet is called {mesh}"));
    Err(match all.as_slice() {
        [] => problem.hint("windtunnel fleet run MESH.toml URL writes one down: there is none yet"),
        [only] => problem.hint(format!("the only one is called {only}")),
        all => problem.hint(format!("they are called {}", all.join(", "))),
    })
}

/// The names of a mesh's experiments.
///
/// # Errors
/// A usage [`Problem`] where there is no such mesh, or there are fewer than two.
pub fn experiments(request: &MeshRequest) -> Result<Vec<String>, Problem> {
    let mesh = request.mesh.as_deref().unwrap_or_default();
    let mut admin = connected(&request.server)?;
    let ids = admin.experiments(mesh, request.all).map_err(|error| problem(&error))?;
    if ids.len() < 2 {
        known(&mut admin, mesh)?;
        return Err(Problem::usage(format!("{} of the mesh \"{mesh}\" are done: a report takes two", ids.len()))
            .hint(format!("windtunnel fleet status {} shows how far it is", request.server_without_password())));
    }
    Ok(ids)
}

/// Every run of a mesh.
///
/// # Errors
/// A [`Problem`].
pub fn runs(request: &MeshRequest) -> Result<Vec<RunLine>, Problem> {
    let mesh = request.mesh.as_deref().unwrap_or_default();
    connected(&request.server)?.runs(mesh).map_err(|error| problem(&error))
}

impl MeshRequest {
    fn server_without_password(&self) -> String {
        store_address(&self.server)
            .map_or_else(|_| "URL".to_owned(), |address| wt_units::shell_word(&address.to_string()).into_owned())
    }
}

pub(crate) fn connected(server: &str) -> Result<FleetAdmin, Problem> {
    FleetAdmin::connect(&store_address(server)?).map_err(|error| problem(&error))
}

pub(crate) fn problem(error: &FleetError) -> Problem {
    let text = error.to_string();
    match error {
        FleetError::Unreachable { .. } => Problem::environment(text)
            .hint("check the address, that its server runs and lets you in: psql with the same address says more"),
        FleetError::NoFleet { place } => {
            Problem::usage(text).hint(format!("windtunnel fleet init {} makes it one", wt_units::shell_word(place)))
        }
        FleetError::Refused { .. } => Problem::environment(text)
            .because("the role lacks a right: a fleet's owner owns its database and may create roles")
            .hint("ALTER ROLE … CREATEROLE, as PostgreSQL's administrator"),
        FleetError::NoSuchAgent { agent } => {
            Problem::usage(text).hint(format!("windtunnel fleet add {agent} URL takes it in"))
        }
        FleetError::RoleOfOthers { agent, .. } => Problem::usage(text)
            .because("whoever has a host's certificate comes in as its role, and may do what the role may")
            .hint(format!("choose another name for the host, such as {agent}-host: its role is made for it")),
        FleetError::Journal(error) => wt_setup::journal::problem(error),
    }
}
