/* lwIP's own bench behind a TUN device: lwiperf, which its sources have among the applications, takes one download of iperf 2 and
 * says what it reckons the rate to be. `scripts/stacks-own.sh` builds and runs it; the figure stands beside that of the adapter.
 */
#define _GNU_SOURCE
#include <poll.h>

#include "device.h"
#include "lwip/apps/lwiperf.h"

static bool done;

static void report(void *arg, enum lwiperf_report_type type, const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote,
                   u16_t remote_port, u32_t bytes, u32_t ms, u32_t kbit_s) {
    (void)arg, (void)local, (void)local_port, (void)remote, (void)remote_port;
    printf("{\"complete\":%s,\"bytes\":%u,\"ms\":%u,\"goodput_bps\":%llu}\n", type == LWIPERF_TCP_DONE_SERVER ? "true" : "false",
           bytes, ms, kbit_s * 1000ull);
    fflush(stdout);
    done = true;
}

int main(int argc, char **argv) {
    parse("lwip", argc, argv);
    start_stack();
    LOCK_TCPIP_CORE();
    if (lwiperf_start_tcp_server_default(report, NULL) == NULL) fail("lwiperf");
    UNLOCK_TCPIP_CORE();
    while (!done) {
        struct pollfd fds[] = {{tun, POLLIN, 0}};
        if (poll(fds, 1, 100) < 0 && errno != EINTR) fail("poll");
        LOCK_TCPIP_CORE();
        receive();
        UNLOCK_TCPIP_CORE();
    }
    _exit(0);
}
