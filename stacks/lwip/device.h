/* lwIP behind a TUN device: what its adapter and its own bench have in common.
 *
 * One thread of ours reads the device, with lwIP's core locked while it calls; lwIP's own thread runs its timers.
 */
#ifndef WINDTUNNEL_LWIP_DEVICE_H
#define WINDTUNNEL_LWIP_DEVICE_H

#include <time.h>

#include "../adapter.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcpip.h"

static int tun = -1;
static struct netif netif_tun;

static inline ip4_addr_t as_lwip(struct in_addr address) {
    return (ip4_addr_t){address.s_addr};
}

static inline err_t output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to) {
    (void)netif;
    (void)to;
    static uint8_t packet[PACKET];
    uint16_t length = pbuf_copy_partial(p, packet, sizeof packet - 1, 0);
    /* What the kernel doesn't take is lost, as on any wire. */
    ssize_t sent = write(tun, packet, length);
    return sent < 0 ? ERR_IF : ERR_OK;
}

static inline err_t netif_ready(struct netif *netif) {
    netif->name[0] = 'w';
    netif->name[1] = 't';
    netif->mtu = (uint16_t)args.mtu;
    netif->output = output;
    return ERR_OK;
}

/* Gives lwIP what has come. */
static inline void receive(void) {
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

static inline void ready(void *arg) {
    (void)arg;
}

/* Brings lwIP up behind the device that `args` names. */
static inline void start_stack(void) {
    /* lwIP takes its first local port from rand(): another one than any process before. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srand((unsigned)(now.tv_nsec ^ now.tv_sec ^ getpid()));
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
}

#endif
