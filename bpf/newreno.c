/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * NewReno with FreeBSD's rules: RFC 5681 and RFC 6582, and the multiplier of net.inet.tcp.cc.newreno.beta.
 * See cc_newreno(4) of FreeBSD.
 */
#define PARAMS(X) X(beta_ppm, 500000)
#include "windtunnel_cc.h"

WT_INLINE void newreno_init(struct sock *sk)
{
	WT_COUNT(sk, connections);
}

WT_INLINE u32 newreno_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 window = wt_min(tp->snd_cwnd, (u32)wt_div(tp->snd_wnd, tp->mss_cache));

	WT_COUNT(sk, losses);
	return wt_max((u32)((u64)window * PARAM(sk, beta_ppm) / 1000000), 2);
}

WT_INLINE void newreno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	wt_reno_grow(sk, acked);
}

WT_INLINE void newreno_acked(struct sock *sk, const struct ack_sample *sample)
{
	(void)sample;
	wt_guard(sk);
}

WT_INLINE void newreno_event(struct sock *sk, u32 event)
{
	/* After a timeout the threshold is half the window, whatever beta is. */
	if (event == WT_EVENT_LOSS)
		wt_tp(sk)->snd_ssthresh = wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_CONGESTION_CONTROL(newreno, newreno_init, newreno_ssthresh, newreno_cong_avoid, newreno_acked, newreno_event, wt_no_state)
