/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * H-TCP: grows faster the longer the last congestion is past. Adaptive back-off and RTT scaling are off, as in FreeBSD.
 * Leith, Shorten: draft-leith-tcp-htcp-06; cc_htcp(4) of FreeBSD.
 */
#define PARAMS(X) X(adaptive_backoff, 0) X(rtt_scaling, 0)
#include "windtunnel_cc.h"

#define HTCP_LOW_SPEED_US 1000000 /* NewReno's growth for so long after congestion */
#define HTCP_MOST_US 60000000	  /* growth rises no further after so long */
#define HTCP_SHIFT 8
#define HTCP_LEAST_BETA (1 << 7)  /* 0.5 */
#define HTCP_MOST_BETA 204	  /* 0.8 */
#define HTCP_REFERENCE_RTT_US 100000

struct htcp {
	u64 congested_us; /* the last congestion */
	u64 before_us;	  /* the one before it, for a timeout that must not count */
	u32 min_srtt;
	u32 max_srtt;
	u32 max_before;
	u32 beta; /* times 256 */
	u8 samples;
	u8 started;
};

WT_INLINE void htcp_init(struct sock *sk)
{
	struct htcp *htcp = wt_priv(sk);

	htcp->congested_us = wt_tp(sk)->tcp_mstamp;
	htcp->before_us = htcp->congested_us;
	htcp->min_srtt = 0;
	htcp->max_srtt = 0;
	htcp->max_before = 0;
	htcp->beta = HTCP_LEAST_BETA;
	htcp->samples = 0;
	htcp->started = 0;
	WT_COUNT(sk, connections);
}

WT_INLINE void htcp_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct htcp *htcp = wt_priv(sk);
	u32 srtt = wt_tp(sk)->srtt_us >> 3;

	wt_guard(sk);
	if (!htcp->started) {
		/* The clock stands still before the first packet. */
		htcp->started = 1;
		htcp->congested_us = wt_tp(sk)->tcp_mstamp;
		htcp->before_us = htcp->congested_us;
	}
	if (sample->rtt_us <= 0)
		return;
	if (htcp->samples < 8) {
		htcp->samples++;
		return;
	}
	if (!htcp->min_srtt || srtt < htcp->min_srtt)
		htcp->min_srtt = srtt;
	htcp->max_srtt = wt_max(htcp->max_srtt, srtt);
}

WT_INLINE u32 htcp_beta(struct sock *sk, const struct htcp *htcp)
{
	u32 beta;

	if (!PARAM(sk, adaptive_backoff) || !htcp->max_srtt)
		return HTCP_LEAST_BETA;
	beta = (u32)(((u64)htcp->min_srtt << HTCP_SHIFT) / htcp->max_srtt);
	return wt_min(wt_max(beta, HTCP_LEAST_BETA), HTCP_MOST_BETA);
}

/* Packets per round trip: 1 + 10 d + (d/2)^2, d being the seconds beyond the first one since the last congestion. */
WT_INLINE u32 htcp_alpha(struct sock *sk, const struct htcp *htcp)
{
	u64 since = wt_tp(sk)->tcp_mstamp - htcp->congested_us;
	u64 d, alpha;

	if ((s64)since <= HTCP_LOW_SPEED_US)
		return 1;
	d = since - HTCP_LOW_SPEED_US;
	if (d > HTCP_MOST_US)
		d = HTCP_MOST_US;
	/* In sixteenths, as FreeBSD has it. */
	alpha = (16 + 160 * d / 1000000 + 4 * ((d / 1000) * (d / 1000)) / 1000000) >> 4;
	if (PARAM(sk, adaptive_backoff))
		alpha = (2 * ((1 << HTCP_SHIFT) - htcp->beta) * alpha) >> HTCP_SHIFT;
	if (PARAM(sk, rtt_scaling)) {
		u32 scale = (u32)(((u64)(wt_tp(sk)->srtt_us >> 3) << HTCP_SHIFT) / HTCP_REFERENCE_RTT_US);

		/* 0.1 to 2 */
		alpha = (wt_min(wt_max(scale, 26), 512) * alpha) >> HTCP_SHIFT;
	}
	return alpha ? (u32)alpha : 1;
}

WT_INLINE void htcp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct htcp *htcp = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);

	(void)ack;
	if (!wt_is_cwnd_limited(tp))
		return;
	if (wt_in_slow_start(tp)) {
		acked = wt_slow_start(tp, acked);
		if (!acked)
			return;
	}
	htcp->beta = htcp_beta(sk, htcp);
	wt_avoid(tp, tp->snd_cwnd, acked, htcp_alpha(sk, htcp));
}

WT_INLINE u32 htcp_ssthresh(struct sock *sk)
{
	struct htcp *htcp = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 beta = HTCP_LEAST_BETA;

	WT_COUNT(sk, losses);
	htcp->before_us = htcp->congested_us;
	htcp->max_before = htcp->max_srtt;
	/* So that an RTT that has become shorter is noticed. */
	if (htcp->max_srtt > htcp->min_srtt)
		htcp->max_srtt = htcp->min_srtt + (u32)((u64)(htcp->max_srtt - htcp->min_srtt) * 95 / 100);
	htcp->congested_us = tp->tcp_mstamp;
	/* The first congestion always halves. */
	if (tp->snd_ssthresh != WT_INFINITE_SSTHRESH)
		beta = htcp_beta(sk, htcp);
	return wt_max((u32)(((u64)tp->snd_cwnd * beta) >> HTCP_SHIFT), 2);
}

WT_INLINE void htcp_event(struct sock *sk, u32 event)
{
	struct htcp *htcp = wt_priv(sk);

	if (event != WT_EVENT_LOSS)
		return;
	wt_tp(sk)->snd_ssthresh = wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
	/* The first timeout may be a false alarm: only from the second on it counts as congestion. */
	if (((struct inet_connection_sock *)sk)->icsk_retransmits == 0) {
		htcp->congested_us = htcp->before_us;
		htcp->max_srtt = htcp->max_before;
	}
}

WT_CONGESTION_CONTROL(htcp, htcp_init, htcp_ssthresh, htcp_cong_avoid, htcp_acked, htcp_event, wt_no_state)
