/* lwIP behind an adapter: carries bytes between local stream sockets and connections of lwIP over a TUN device.
 *
 * The protocol is told in docs/guide/stacks.md and crates/stacks/src/protocol.rs. One thread of ours does everything, with
 * lwIP's core locked while it calls; lwIP's own thread runs its timers.
 *
 * A window below that which the library was built with (TCP_WND) is held by lowering the receive window when the connection
 * stands; a larger one isn't possible, and is refused.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>

#include "device.h"
#include "lwip/tcp.h"
#include "lwip/priv/tcp_priv.h"

struct connection {
    int fd; /* the program's end; -1: not in use */
    struct tcp_pcb *pcb; /* NULL once lwIP has let it go */
    struct pbuf *in; /* what has come and the program hasn't taken */
    bool connected, told, failed, in_ended, out_ended;
};

static struct connection all[MOST];
static unsigned long long opened, bytes_in, bytes_out;

/* What this build of lwIP can't. */
static void limit(void) {
    if (args.window > TCP_WND) {
        refuse("this lwIP was built for windows of at most 65535 bytes");
        args.window = 0;
    }
    if (args.mss && args.mss + 40 < args.mtu) args.mtu = args.mss + 40;
}

static void hold_window(struct tcp_pcb *pcb) {
    if (args.window == 0) return;
    pcb->rcv_wnd = pcb->rcv_ann_wnd = args.window;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error) {
    struct connection *c = arg;
    (void)error;
    hold_window(pcb);
    c->connected = true;
    return ERR_OK;
}

/* Hands to the program what it takes now. False when it has gone. */
static bool hand_over(struct connection *c) {
    while (c->in != NULL) {
        struct pbuf *p = c->in;
        ssize_t n = write(c->fd, p->payload, p->len);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        c->in = pbuf_free_header(p, (uint16_t)n);
        bytes_in += (unsigned long long)n;
        if (c->pcb != NULL) tcp_recved(c->pcb, (uint16_t)n);
    }
    return true;
}

/* The program reads before lwIP acknowledges, as a program of lwIP's own does in this callback. */
static err_t on_receive(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
    struct connection *c = arg;
    (void)pcb;
    (void)error;
    if (p == NULL) c->in_ended = true;
    else if (c->in == NULL) c->in = p;
    else pbuf_cat(c->in, p);
    /* Whoever has gone is found again where the connection may end. */
    if (c->told) hand_over(c);
    return ERR_OK;
}

static void on_error(void *arg, err_t error) {
    struct connection *c = arg;
    (void)error;
    c->pcb = NULL;
    c->failed = true;
}

/* The connection is over, with a reset if that isn't by both ends' will. */
static void end(struct connection *c, bool reset) {
    if (c->pcb != NULL) {
        struct tcp_pcb *pcb = c->pcb;
        tcp_arg(pcb, NULL);
        tcp_recv(pcb, NULL);
        tcp_err(pcb, NULL);
        if (reset || tcp_close(pcb) != ERR_OK) tcp_abort(pcb);
    }
    if (c->in != NULL) pbuf_free(c->in);
    close(c->fd);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

static void begin(int fd) {
    struct connection *c = NULL;
    for (int i = 0; i < MOST && c == NULL; i++)
        if (all[i].fd < 0) c = &all[i];
    struct tcp_pcb *pcb = c ? tcp_new_ip_type(IPADDR_TYPE_V4) : NULL;
    if (pcb == NULL) {
        close(fd);
        return;
    }
    memset(c, 0, sizeof *c);
    c->fd = fd;
    c->pcb = pcb;
    opened++;
    tcp_arg(pcb, c);
    tcp_recv(pcb, on_receive);
    tcp_err(pcb, on_error);
    tcp_nagle_disable(pcb);
    ip_addr_t server;
    ip_addr_copy_from_ip4(server, as_lwip(args.server));
    if (tcp_connect(pcb, &server, args.port, on_connected) != ERR_OK) end(c, true);
}

/* From the program to the stack. False when the connection has ended. */
static bool carry_out(struct connection *c) {
    while (!c->out_ended && c->pcb != NULL && tcp_sndbuf(c->pcb) > 0) {
        static uint8_t piece[PIECE];
        size_t room = tcp_sndbuf(c->pcb);
        if (tcp_sndqueuelen(c->pcb) + PIECE / 536 >= TCP_SND_QUEUELEN) break;
        ssize_t n = read(c->fd, piece, room < PIECE ? room : PIECE);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (n <= 0) {
            c->out_ended = true;
            if (n < 0 || tcp_shutdown(c->pcb, 0, 1) != ERR_OK) {
                end(c, true);
                return false;
            }
            break;
        }
        if (tcp_write(c->pcb, piece, (uint16_t)n, TCP_WRITE_FLAG_COPY) != ERR_OK) {
            end(c, true);
            return false;
        }
        bytes_out += (unsigned long long)n;
        tcp_output(c->pcb);
    }
    return true;
}

/* From the stack to the program. */
static void carry_in(struct connection *c) {
    if (!hand_over(c)) {
        end(c, true);
        return;
    }
    if (c->in_ended && c->in == NULL) {
        shutdown(c->fd, SHUT_WR);
        if (c->out_ended) end(c, false);
    }
}

static void carry(struct connection *c) {
    if (c->fd < 0) return;
    if (c->connected && !c->told) {
        c->told = true;
        if (write(c->fd, "+", 1) != 1) {
            end(c, true);
            return;
        }
    }
    if (c->failed && c->in == NULL) {
        end(c, true);
        return;
    }
    if (c->told && carry_out(c)) carry_in(c);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--describe")) {
        printf("{\"protocol\":1,\"name\":\"lwip\",\"version\":\"%s\",\"options\":[]}\n", LWIP_VERSION_STRING);
        return 0;
    }
    parse("lwip", argc, argv);
    limit();
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < MOST; i++) all[i].fd = -1;
    start_stack();
    int listener = open_listener();
    printf("{\"ready\":true,\"name\":\"lwip\",\"version\":\"%s\",\"granted\":{\"mtu\":%u,\"mss\":%u,\"rwin\":%u,\"nagle\":\"off\"},"
           "\"refused\":[%s]}\n",
           LWIP_VERSION_STRING, args.mtu, args.mtu - 40 < TCP_MSS ? args.mtu - 40 : TCP_MSS,
           args.window ? args.window : TCP_WND, args.refused);
    fflush(stdout);
    for (;;) {
        struct pollfd fds[3 + MOST] = {{0, POLLIN, 0}, {listener, POLLIN, 0}, {tun, POLLIN, 0}};
        LOCK_TCPIP_CORE();
        for (int i = 0; i < MOST; i++) {
            struct connection *c = &all[i];
            bool hears = c->fd >= 0 && c->told && !c->out_ended && c->pcb && tcp_sndbuf(c->pcb) > 0;
            short events = (short)((hears ? POLLIN : 0) | (c->fd >= 0 && c->in ? POLLOUT : 0));
            fds[3 + i] = (struct pollfd){events ? c->fd : -1, events, 0};
        }
        UNLOCK_TCPIP_CORE();
        /* lwIP's own thread may have let a connection go meanwhile. */
        if (poll(fds, 3 + MOST, 100) < 0 && errno != EINTR) fail("poll");
        char ignored[64];
        if (fds[0].revents && read(0, ignored, sizeof ignored) <= 0) break;
        LOCK_TCPIP_CORE();
        receive();
        for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) begin(fd);
        for (int i = 0; i < MOST; i++) carry(&all[i]);
        UNLOCK_TCPIP_CORE();
    }
    printf("{\"done\":true,\"connections\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu}\n", opened, bytes_in, bytes_out);
    fflush(stdout);
    _exit(0);
}
