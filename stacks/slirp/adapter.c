/* libslirp behind an adapter: carries bytes between local stream sockets and connections of libslirp over a TUN device.
 *
 * The protocol is told in docs/guide/stacks.md and crates/stacks/src/protocol.rs. libslirp opens a TCP connection to its guest
 * for each connection to a socket that it forwards: here a local one of our own, and the guest is the server. It doesn't say when
 * a handshake is done; that is seen as its packets pass. It speaks Ethernet: headers are put on and taken off, and its one
 * neighbour is told it at the beginning.
 *
 * Its receive buffer is a constant of the library: a window can't be set, and is refused.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <time.h>

#include <slirp/libslirp.h>

#include "../adapter.h"

enum { ETHERNET = 14, SYN = 2, RST = 4, ACK = 16, MOST_FDS = 256 };

/* One direction: what was read and not yet written. */
struct flow {
    uint8_t bytes[PIECE];
    size_t from, to;
    bool ended, told; /* no more comes; the other side knows */
};

struct connection {
    int near, inner; /* the program's end, and libslirp's; -1: not in use */
    uint16_t port;   /* the local one, as it stands in packets; 0: no SYN yet */
    bool connected, said;
    unsigned long number;
    struct flow out, in;
};

static int tun = -1, listener = -1;
static Slirp *slirp;
static struct connection all[MOST];
static unsigned long long opened, bytes_in, bytes_out;
static struct sockaddr_un inside = {.sun_family = AF_UNIX};

/* What libslirp waits for. */
static struct pollfd fds[MOST_FDS];
static nfds_t used;

/* Neighbours' addresses: the guest's, and libslirp's own as it makes it. */
static const uint8_t guest_mac[6] = {0x52, 0x54, 0, 0, 0, 1};

/* The TCP header of an IPv4 packet, if it has one. */
static const uint8_t *tcp_of(const uint8_t *packet, size_t length) {
    size_t header = length < 20 ? 0 : (packet[0] & 15u) * 4;
    return header >= 20 && packet[9] == 6 && length >= header + 20 ? packet + header : NULL;
}

static uint16_t port_at(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static struct connection *of_port(uint16_t port) {
    for (int i = 0; i < MOST; i++)
        if (all[i].near >= 0 && all[i].port == port) return &all[i];
    return NULL;
}

/* A SYN of a port that nobody has belongs to the oldest connection without one: libslirp takes them in order. */
static void claim(uint16_t port) {
    struct connection *oldest = NULL;
    for (int i = 0; i < MOST; i++) {
        struct connection *c = &all[i];
        if (c->near >= 0 && c->port == 0 && (oldest == NULL || c->number < oldest->number)) oldest = c;
    }
    if (oldest) oldest->port = port;
}

static ssize_t send_packet(const void *frame, size_t length, void *opaque) {
    (void)opaque;
    const uint8_t *bytes = frame;
    /* ARP asks for the one neighbour, and has been told. */
    if (length <= ETHERNET || port_at(bytes + 12) != 0x0800) return (ssize_t)length;
    const uint8_t *packet = bytes + ETHERNET, *tcp = tcp_of(packet, length - ETHERNET);
    if (tcp && (tcp[13] & (SYN | ACK)) == SYN && of_port(port_at(tcp)) == NULL) claim(port_at(tcp));
    /* What the kernel doesn't take is lost, as on any wire. */
    (void)!write(tun, packet, length - ETHERNET);
    return (ssize_t)length;
}

static void guest_error(const char *message, void *opaque) {
    (void)message;
    (void)opaque;
}

static int64_t clock_ns(void *opaque) {
    (void)opaque;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Timers are for IPv6's router advertisements, which are off. */
static void *timer_new(SlirpTimerCb callback, void *with, void *opaque) {
    (void)callback;
    (void)with;
    (void)opaque;
    return (void *)fds;
}

static void timer_free(void *timer, void *opaque) {
    (void)timer;
    (void)opaque;
}

static void timer_mod(void *timer, int64_t at, void *opaque) {
    (void)timer;
    (void)at;
    (void)opaque;
}

static void no_fd(int fd, void *opaque) {
    (void)fd;
    (void)opaque;
}

static void no_notice(void *opaque) {
    (void)opaque;
}

static const SlirpCb callbacks = {
    .send_packet = send_packet,
    .guest_error = guest_error,
    .clock_get_ns = clock_ns,
    .timer_new = timer_new,
    .timer_free = timer_free,
    .timer_mod = timer_mod,
    .register_poll_fd = no_fd,
    .unregister_poll_fd = no_fd,
    .notify = no_notice,
};

static int add_poll(int fd, int events, void *opaque) {
    (void)opaque;
    if (used >= MOST_FDS) return -1;
    short wanted = 0;
    if (events & SLIRP_POLL_IN) wanted |= POLLIN;
    if (events & SLIRP_POLL_OUT) wanted |= POLLOUT;
    if (events & SLIRP_POLL_PRI) wanted |= POLLPRI;
    fds[used] = (struct pollfd){fd, wanted, 0};
    return (int)used++;
}

static int get_revents(int index, void *opaque) {
    (void)opaque;
    if (index < 0) return 0;
    short came = fds[index].revents;
    int told = 0;
    if (came & POLLIN) told |= SLIRP_POLL_IN;
    if (came & POLLOUT) told |= SLIRP_POLL_OUT;
    if (came & POLLPRI) told |= SLIRP_POLL_PRI;
    if (came & POLLERR) told |= SLIRP_POLL_ERR;
    if (came & POLLHUP) told |= SLIRP_POLL_HUP;
    return told;
}

/* The guest says who it is, so that libslirp needn't ask. */
static void introduce(void) {
    uint8_t arp[ETHERNET + 28] = {[12] = 0x08, [13] = 0x06, [15] = 1, [16] = 0x08, [18] = 6, [19] = 4, [21] = 1};
    memset(arp, 0xff, 6);
    memcpy(arp + 6, guest_mac, 6);
    memcpy(arp + 22, guest_mac, 6);
    memcpy(arp + 28, &args.server, 4);
    memcpy(arp + 38, &args.server, 4);
    slirp_input(slirp, arp, sizeof arp);
}

static void start(void) {
    uint32_t largest = args.mss && args.mss + 40 < args.mtu ? args.mss + 40 : args.mtu;
    SlirpConfig config = {
        .version = 4,
        .in_enabled = true,
        .vnetwork = {htonl(0xc6120000)}, /* 198.18.0.0/15, in which both ends are */
        .vnetmask = {htonl(0xfffe0000)},
        .vhost = args.address,
        .vdhcp_start = {htonl(0xc612000f)},
        .vnameserver = {htonl(0xc6120003)},
        .if_mtu = largest,
        .if_mru = largest,
        .disable_dns = true,
        .disable_dhcp = true,
    };
    slirp = slirp_new(&config, &callbacks, NULL);
    if (slirp == NULL) fail("libslirp");
    introduce();
    if (snprintf(inside.sun_path, sizeof inside.sun_path, "%s.in", args.listen) >= (int)sizeof inside.sun_path) usage("--listen");
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr = args.server, .sin_port = htons(args.port)};
    if (slirp_add_hostxfwd(slirp, (struct sockaddr *)&inside, sizeof inside, (struct sockaddr *)&server, sizeof server, 0) < 0)
        fail("forward a local socket");
}

static void end(struct connection *c) {
    close(c->near);
    if (c->inner >= 0) close(c->inner);
    c->near = c->inner = -1;
}

/* Whether libslirp still has to take a connection: its queue is short, so they come one by one. */
static bool busy(void) {
    for (int i = 0; i < MOST; i++)
        if (all[i].near >= 0 && all[i].port == 0) return true;
    return false;
}

static void begin(int fd) {
    struct connection *c = NULL;
    for (int i = 0; i < MOST && c == NULL; i++)
        if (all[i].near < 0) c = &all[i];
    int inner = c ? socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (inner < 0 || connect(inner, (struct sockaddr *)&inside, sizeof inside) < 0) {
        if (inner >= 0) close(inner);
        close(fd);
        return;
    }
    memset(c, 0, sizeof *c);
    c->near = fd;
    c->inner = inner;
    c->number = ++opened;
}

/* Moves what can be moved. False when the connection is broken. */
static bool move(int from, int to, struct flow *flow, unsigned long long *count) {
    for (;;) {
        if (flow->from == flow->to && !flow->ended) {
            ssize_t n = read(from, flow->bytes, sizeof flow->bytes);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
            if (n < 0) return false;
            flow->ended = n == 0;
            flow->from = 0;
            flow->to = (size_t)n;
        }
        if (flow->from == flow->to) {
            if (flow->ended && !flow->told) {
                flow->told = true;
                shutdown(to, SHUT_WR);
            }
            return true;
        }
        ssize_t n = write(to, flow->bytes + flow->from, flow->to - flow->from);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (n <= 0) return false;
        flow->from += (size_t)n;
        *count += (unsigned long long)n;
    }
}

static void carry(struct connection *c) {
    if (c->near < 0) return;
    if (c->connected && !c->said) {
        c->said = true;
        if (write(c->near, "+", 1) != 1) {
            end(c);
            return;
        }
    }
    /* Before that, libslirp's end closes only if the handshake has failed. */
    if (!c->said) {
        char byte;
        if (recv(c->inner, &byte, 1, MSG_PEEK) == 0) end(c);
        return;
    }
    bool goes = move(c->near, c->inner, &c->out, &bytes_out) && move(c->inner, c->near, &c->in, &bytes_in);
    if (!goes || (c->out.told && c->in.told)) end(c);
}

static void receive(void) {
    static uint8_t frame[ETHERNET + PACKET];
    for (;;) {
        ssize_t n = read(tun, frame + ETHERNET, PACKET);
        if (n <= 0) return;
        memset(frame, 0x52, 6);
        memcpy(frame + 6, guest_mac, 6);
        frame[12] = 0x08;
        frame[13] = 0;
        const uint8_t *tcp = tcp_of(frame + ETHERNET, (size_t)n);
        struct connection *c = tcp ? of_port(port_at(tcp + 2)) : NULL;
        bool answered = tcp && (tcp[13] & (SYN | ACK | RST)) == (SYN | ACK);
        slirp_input(slirp, frame, (int)(n + ETHERNET));
        if (c && answered) c->connected = true;
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--describe")) {
        printf("{\"protocol\":1,\"name\":\"slirp\",\"version\":\"%s\",\"options\":[]}\n", slirp_version_string());
        return 0;
    }
    parse("slirp", argc, argv);
    if (args.window) {
        refuse("libslirp's window can't be set");
        args.window = 0;
    }
    signal(SIGPIPE, SIG_IGN);
    /* libslirp takes its ports from random(): others than any process before. */
    srandom((unsigned)(clock_ns(NULL) ^ getpid()));
    for (int i = 0; i < MOST; i++) all[i].near = all[i].inner = -1;
    tun = open_tun();
    start();
    listener = open_listener();
    printf("{\"ready\":true,\"name\":\"slirp\",\"version\":\"%s\",\"granted\":{\"mtu\":%u,\"mss\":%u},\"refused\":[%s]}\n", slirp_version_string(),
           args.mtu, args.mss && args.mss + 40 < args.mtu ? args.mss : args.mtu - 40, args.refused);
    fflush(stdout);
    for (;;) {
        uint32_t timeout = 1000;
        fds[0] = (struct pollfd){0, POLLIN, 0};
        fds[1] = (struct pollfd){busy() ? -1 : listener, POLLIN, 0};
        fds[2] = (struct pollfd){tun, POLLIN, 0};
        used = 3;
        for (int i = 0; i < MOST; i++) {
            struct connection *c = &all[i];
            if (c->near < 0) continue;
            bool more = c->said && !c->out.ended && c->out.from == c->out.to;
            bool stuck_in = c->in.from != c->in.to, stuck_out = c->out.from != c->out.to;
            short near = (short)((more ? POLLIN : 0) | (stuck_in ? POLLOUT : 0));
            short inner = (short)((!c->in.ended && !stuck_in ? POLLIN : 0) | (stuck_out ? POLLOUT : 0));
            if (near) fds[used++] = (struct pollfd){c->near, near, 0};
            if (inner) fds[used++] = (struct pollfd){c->inner, inner, 0};
        }
        slirp_pollfds_fill(slirp, &timeout, add_poll, NULL);
        int ready = poll(fds, used, (int)timeout);
        if (ready < 0 && errno != EINTR) fail("poll");
        char ignored[64];
        if (fds[0].revents && read(0, ignored, sizeof ignored) <= 0) break;
        receive();
        int fd = busy() ? -1 : accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) begin(fd);
        slirp_pollfds_poll(slirp, ready < 0, get_revents, NULL);
        for (int i = 0; i < MOST; i++) carry(&all[i]);
    }
    printf("{\"done\":true,\"connections\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu}\n", opened, bytes_in, bytes_out);
    fflush(stdout);
    _exit(0);
}
