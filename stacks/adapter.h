/* What adapters in C have in common: their arguments, their device and their local socket.
 *
 * The protocol is told in docs/guide/stacks.md and crates/stacks/src/protocol.rs.
 */
#ifndef WINDTUNNEL_ADAPTER_H
#define WINDTUNNEL_ADAPTER_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections at once, bytes that are carried at once, the largest packet, the code of whoever can't do what it was told. */
enum { MOST = 60, PIECE = 16 * 1024, PACKET = 65536, REFUSED = 3 };

static struct {
    const char *device, *listen;
    struct in_addr address, server;
    uint16_t port; /* as one says it */
    uint32_t mtu, mss, window;
    char refused[512]; /* a list of JSON, without its brackets */
} args;

static inline void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(REFUSED);
}

static inline void usage(const char *flag) {
    fprintf(stderr, "%s isn't understood\n", flag);
    exit(REFUSED);
}

static inline uint32_t number(const char *flag, const char *text) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == 0 || *end != 0 || value > 1ul << 30) usage(flag);
    return (uint32_t)value;
}

static inline void refuse(const char *what) {
    size_t used = strlen(args.refused);
    snprintf(args.refused + used, sizeof args.refused - used, "%s\"%s\"", used ? "," : "", what);
}

/* An option's name goes into JSON: only what needs no escape. */
static inline void refuse_option(const char *stack, const char *text) {
    char name[64];
    size_t at = (size_t)snprintf(name, sizeof name, "%s has no option ", stack);
    for (; *text && *text != '=' && at < sizeof name - 1; text++)
        if ((*text >= 'a' && *text <= 'z') || *text == '-') name[at++] = *text;
    name[at] = 0;
    refuse(name);
}

/* Reads the command line into `args`. No stack in C has options of its own. */
static inline void parse(const char *stack, int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value == NULL) usage(flag);
        if (!strcmp(flag, "--device")) args.device = value;
        else if (!strcmp(flag, "--listen")) args.listen = value;
        else if (!strcmp(flag, "--mtu")) args.mtu = number(flag, value);
        else if (!strcmp(flag, "--mss")) args.mss = number(flag, value);
        else if (!strcmp(flag, "--window")) args.window = number(flag, value);
        else if (!strcmp(flag, "--option")) refuse_option(stack, value);
        else if (!strcmp(flag, "--address")) {
            if (!inet_aton(value, &args.address)) usage(flag);
        } else if (!strcmp(flag, "--server")) {
            char text[64];
            snprintf(text, sizeof text, "%s", value);
            char *colon = strrchr(text, ':');
            if (colon == NULL) usage(flag);
            *colon = 0;
            uint32_t port = number(flag, colon + 1);
            if (!inet_aton(text, &args.server) || port == 0 || port > 65535) usage(flag);
            args.port = (uint16_t)port;
        } else usage(flag);
    }
    if (!args.device || !args.listen || !args.port || args.mtu < 576 || args.mtu > 65535) usage("--device, --listen, --server or --mtu");
}

/* Makes the TUN device. */
static inline int open_tun(void) {
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fail("/dev/net/tun");
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", args.device);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(fd, TUNSETIFF, &request) < 0) fail(args.device);
    return fd;
}

/* A local socket that listens. */
static inline int open_listener(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(args.listen) >= sizeof address.sun_path) usage("--listen");
    strcpy(address.sun_path, args.listen);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0) fail(args.listen);
    return fd;
}

#endif
