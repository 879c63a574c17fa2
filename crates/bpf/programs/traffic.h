/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What traffic.c shares with the kernel and with its loader. The layout of struct control and of the records is repeated in
 * src/traffic/layout.rs.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline, unused))
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NTOHL(x) __builtin_bswap32(x)
#define NTOHS(x) __builtin_bswap16(x)
#else
#define NTOHL(x) (x)
#define NTOHS(x) (x)
#endif

/* linux/bpf.h, whose layout is a promise of the kernel */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port, is_fullsock;
	u32 snd_cwnd, srtt_us, cb_flags, state, rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una, mss_cache, ecn_flags;
	u32 rate_delivered, rate_interval_us, packets_out, retrans_out, total_retrans, segs_in, data_segs_in, segs_out;
	u32 data_segs_out, lost_out, sacked_out, sk_txhash;
	u64 bytes_received, bytes_acked;
	void *sk;
};
enum { RWND_INIT = 2, PASSIVE_ESTABLISHED = 5, NEEDS_ECN = 6, TIMED_OUT = 8, STATE = 10, ACKNOWLEDGED = 19, WRITTEN = 20 };
enum { RTO_FLAG = 1, STATE_FLAG = 4 };
enum { ESTABLISHED = 1, CLOSE = 7 };
/* A bit for each state in which an end has sent its FIN: FIN_WAIT1, FIN_WAIT2, TIME_WAIT, LAST_ACK, CLOSING. */
enum { FIN_SENT = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 9 | 1 << 11 };
#define REPLY(s) (*(volatile u32 *)&(s)->args[0])

static void *(*storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
#ifdef RESPONSES
static u64 (*cookie_of)(void *s) = (void *)46;
#endif
static u64 (*now_ns)(void) = (void *)5;
static u32 (*processor)(void) = (void *)8;
static long (*set_option)(void *s, int level, int name, void *value, int length) = (void *)49;
static long (*get_option)(void *s, int level, int name, void *value, int length) = (void *)57;
static long (*set_flags)(void *s, int flags) = (void *)59;
static u64 (*namespace_cookie)(void *s) = (void *)122;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *record, u64 flags) = (void *)132;
#ifdef IDLE
static void *(*to_tcp_sock)(void *sk) = (void *)137;
static u64 (*jiffies64)(void) = (void *)118;
static long (*write_out)(void *file, const void *data, u32 size) = (void *)127;

/* include/linux/tcp.h: moved to where the running kernel has them. The type was two bits of a byte before Linux 6.18. */
struct minmax_sample {
	u32 t, v;
} __attribute__((preserve_access_index));
struct minmax {
	struct minmax_sample s[3];
} __attribute__((preserve_access_index));
struct tcp_congestion_ops {
	char name[16];
} __attribute__((preserve_access_index));
struct sock_common {
	u8 skc_state;
} __attribute__((preserve_access_index));
struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));
struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct tcp_congestion_ops *icsk_ca_ops;
} __attribute__((preserve_access_index));
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u8 chrono_type;
	u32 chrono_start;
	u32 chrono_stat[3];
	u32 write_seq, snd_una, snd_nxt, srtt_us, total_retrans, segs_out, data_segs_out, segs_in, snd_cwnd, mss_cache;
	u64 bytes_acked, bytes_received;
	struct minmax rtt_min;
} __attribute__((preserve_access_index));
#endif
#ifdef RESPONSES
/* Has the kernel tell when what has just been written is acknowledged; it wants the context as its own struct. */
extern int bpf_sock_ops_enable_tx_tstamp(void *kernels, u64 flags) SEC(".ksyms");
extern void *bpf_cast_to_kern_ctx(void *s) SEC(".ksyms");
#endif

#define ARMS 8
#define PORTS 8
#define ADMINISTRATORS 4
#define OWN_ADDRESSES 64
#define PROCESSORS 32
/* So many responses of a connection are told one by one: a client that asks for ever fills no ring. */
#define RESPONSES_TOLD 64

struct arm {
	u32 initcwnd, cwnd_clamp, rto_min_us, delack_max_us, notsent_lowat, window_clamp, initrwnd, ecn;
	u64 pacing; /* bytes a second */
	char cc[16];
	u64 spare;
};

/* Why a connection isn't in the experiment, and how many are. */
enum {
	PASSIVE, /* all of the namespace, before any other question */
	OTHER_PORT,
	PRIVATE_ADDRESS, /* or this host's own */
	OWN_CC, /* the socket has a congestion control of its own */
	PAUSED, /* nobody beats the heart */
	OUTSIDE, /* drawn into no arm */
	NO_NOTE, /* no memory */
	RECORDED,
	ADMINISTRATOR, /* from where somebody is logged in who runs the experiment */
	RESPONSES_LOST, /* no room in the ring */
	COUNTS,
};

/* Each processor counts by itself, so that none waits for a cache line that another one writes; those above the last share. */
struct counters {
	u64 counts[16];
	u64 assigned[ARMS];
	u64 lost[ARMS];
};

struct control {
	u64 heartbeat_ns, patience_ns; /* 0 patience: paused */
	u64 namespace;
	u64 key[2], tag_key[2];
	u64 epoch;
	u64 by_connection;
	u64 arms;
	u64 skip_private, skip_loopback;
	u64 skip_own_cc;
	u64 varies_cc;
	u64 asks_requests; /* 1: an arm has an initial receive window, 2: an arm accepts ECN */
	u64 ports;
	u64 port[PORTS];
	u64 administrators;
	u64 administrator[2 * ADMINISTRATORS]; /* IPv4 as mapped addresses */
	u64 own_mask; /* a bit for each of this host's own addresses: few clients share it with one of them */
	u64 own_addresses;
	u64 own[2 * OWN_ADDRESSES];
	u64 below[ARMS]; /* of 2^32: a draw below it, and not below the one before, is of this arm */
	char usual_cc[16];
	struct arm arm[ARMS];
	u64 spare[3]; /* so that counters begin with a cache line */
	struct counters counters[PROCESSORS];
};
struct control control SEC(".bss");
_Static_assert(__builtin_offsetof(struct control, counters) % 64 == 0 && sizeof(struct counters) % 64 == 0, "whole cache lines");

/* What is kept of a connection. 120 bytes: 192 with the 72 that the kernel adds where it keeps it, which is a size of its allocator;
 * more would take 256. */
struct note {
	u64 tag;
	u64 epoch;
	u64 since_ns;
	u64 finished_ns;
	u64 idle_ns;
	u16 arm;
	u16 refused; /* options that the kernel refused or made something else of, a bit each */
	u16 under_way; /* a response is */
	u16 responses; /* that have ended */
	u32 rtos;
	u32 cwnd; /* read back */
	u64 since_jiffies;
	char cc[16];
	/* the response that is under way, and the last one that isn't told yet */
	u64 began_ns;
	u64 took_ns;
	u64 ended_ns;
	u32 took_bytes;
	u32 end_seq; /* what comes after the last byte written so far */
	u32 begin_seq;
	u32 busy_jiffies; /* when the last one ended */
};

struct record {
	u64 tag;
	u64 epoch;
	u64 since_ns;
	u64 lasted_ns; /* to its end */
	u64 finished_ns; /* until all was acknowledged */
	u64 idle_ns; /* of that: nothing was outstanding */
	u64 bytes_acked, bytes_received;
	u32 arm;
	u32 refused;
	u32 rtos;
	u32 initcwnd;
	u32 last_state;
	u32 unacked;
	u32 srtt_us, min_rtt_us;
	u32 retransmitted, segments_out, data_segments_out, segments_in;
	u32 cwnd, mss;
	u32 changed; /* options that are something else than they were set to, a bit each */
	u32 ecn;
	u64 response_ns; /* the last one, which isn't told by itself */
	u64 response_ended_ns;
	u32 response_bytes;
	u32 responses; /* that one among them */
	u32 response_cut; /* not all of it was acknowledged */
	u32 spare;
};

struct response {
	u64 tag;
	u64 epoch;
	u64 since_ns;
	u64 ended_ns; /* from the connection's establishment */
	u64 took_ns;
	u32 arm;
	u32 bytes;
};

/* The loader makes the maps and finds them by these names. */
struct { int unused; } notes SEC(".maps"), records SEC(".maps");
