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
#include <time.h>

#include "../adapter.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"
#include "lwip/tcpip.h"
#include "lwip/priv/tcp_priv.h"

struct connection {
    int fd; /* the program's end; -1: not in use */
    struct tcp_pcb *pcb; /* NULL once lwIP has let it go */
    struct pbuf *in; /* what has come and the program hasn't taken */
    bool connected, told, failed, in_ended, out_ended;
};

static int tun = -1;
static struct netif netif_tun;
static struct connection all[MOST];
static unsigned long long opened, bytes_in, bytes_out;

static ip4_addr_t as_lwip(struct in_addr address) {
    return (ip4_addr_t){address.s_addr};
}

/* What this build of lwIP can't. */
static void limit(void) {
    if (args.window > TCP_WND) {
        refuse("this lwIP was built for windows of at most 65535 bytes");
        args.window = 0;
    }
    if (args.mss && args.mss + 40 < args.mtu) args.mtu = args.mss + 40;
}

static err_t output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to) {
    (void)netif;
    (void)to;
    static uint8_t packet[PACKET];
    uint16_t length = pbuf_copy_partial(p, packet, sizeof packet - 1, 0);
    /* What the kernel doesn't take is lost, as on any wire. */
    ssize_t sent = write(tun, packet, length);
    return sent < 0 ? ERR_IF : ERR_OK;
}

static err_t netif_ready(struct netif *netif) {
    netif->name[0] = 'w';
    netif->name[1] = 't';
    netif->mtu = (uint16_t)args.mtu;
    netif->output = output;
    return ERR_OK;
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

static err_t on_receive(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
    struct connection *c = arg;
    (void)pcb;
    (void)error;
    if (p == NULL) c->in_ended = true;
    else if (c->in == NULL) c->in = p;
    else pbuf_cat(c->in, p);
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
    while (c->in != NULL) {
        struct pbuf *p = c->in;
        ssize_t n = write(c->fd, p->payload, p->len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) {
            end(c, true);
            return;
        }
        c->in = pbuf_free_header(p, (uint16_t)n);
        bytes_in += (unsigned long long)n;
        if (c->pcb != NULL) tcp_recved(c->pcb, (uint16_t)n);
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

static void receive(void) {
    static uint8_t packet[PACKET];
    for (;;) {
        ssize_t n = read(tun, packet, sizeof packet);
        if (n <= 0) return;
        struct pbuf *p = pbuf_alloc(PBUF_RAW, (uint16_t)n, PBUF_RAM);
        if (p == NULL) continue;
        pbuf_take(p, packet, (uint16_t)n);
        if (ip_input(p, &netif_tun) != ERR_OK) pbuf_free(p);
    }
}

static void ready(void *arg) {
    (void)arg;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--describe")) {
        printf("{\"protocol\":1,\"name\":\"lwip\",\"version\":\"%s\",\"options\":[]}\n", LWIP_VERSION_STRING);
        return 0;
    }
    parse("lwip", argc, argv);
    limit();
    signal(SIGPIPE, SIG_IGN);
    /* lwIP takes its first local port from rand(): another one than any process before. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srand((unsigned)(now.tv_nsec ^ now.tv_sec ^ getpid()));
    for (int i = 0; i < MOST; i++) all[i].fd = -1;
    tun = open_tun();
    tcpip_init(ready, NULL);
    ip4_addr_t address = as_lwip(args.address), gateway = as_lwip(args.server), mask;
    IP4_ADDR(&mask, 255, 255, 255, 255);
    LOCK_TCPIP_CORE();
    if (netif_add(&netif_tun, &address, &mask, &gateway, NULL, netif_ready, ip_input) == NULL) fail("netif_add");
    netif_set_default(&netif_tun);
    netif_set_link_up(&netif_tun);
    netif_set_up(&netif_tun);
    UNLOCK_TCPIP_CORE();
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
