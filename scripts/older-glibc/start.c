/* Since 2.34 the start code of a program (crt1.o) leaves constructors to glibc; before, it told glibc which function runs them. Told
 * so, a newer glibc does as the older one. */
typedef void constructor(int, char **, char **);
extern constructor *__preinit_array_start[] __attribute__((visibility("hidden")));
extern constructor *__preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor *__init_array_start[] __attribute__((visibility("hidden")));
extern constructor *__init_array_end[] __attribute__((visibility("hidden")));

static void constructors(int argc, char **argv, char **envp)
{
    for (constructor **each = __preinit_array_start; each < __preinit_array_end; each++)
        (*each)(argc, argv, envp);
    for (constructor **each = __init_array_start; each < __init_array_end; each++)
        (*each)(argc, argv, envp);
}

typedef int program(int, char **, char **);
int __real___libc_start_main(program *, int, char **, constructor *, void (*)(void), void (*)(void), void *);

int __wrap___libc_start_main(program *main, int argc, char **argv, constructor *init, void (*fini)(void), void (*linker_fini)(void), void *stack)
{
    return __real___libc_start_main(main, argc, argv, init ? init : constructors, fini, linker_fini, stack);
}
