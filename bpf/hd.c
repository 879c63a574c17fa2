/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * HD, Hamilton's delay-based control: at every ACK whose queueing delay is above a bound, back off with a probability that
 * rises with the delay up to a threshold and falls beyond it. Losses as NewReno.
 * Budzisz, Stanojevic, Shorten, Baker: IEEE Communications Letters 13(7), 2009; cc_hd(4) of FreeBSD.
 */
#define PARAMS(X) X(queue_threshold_us, 20000) X(queue_min_us, 5000) X(pmax_ppm, 50000)
#include "windtunnel_cc.h"

struct hd {
	struct wt_ertt ertt;
	u32 random;
};

WT_INLINE void hd_init(struct sock *sk)
{
	struct hd *hd = wt_priv(sk);

	wt_ertt_begin(sk, &hd->ertt);
	hd->random = wt_random_begin(sk);
}

WT_INLINE void hd_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct hd *hd = wt_priv(sk);

	wt_guard(sk);
	wt_ertt_acked(sk, &hd->ertt, sample);
}

/* Whether to back off, drawn at every ACK by the latest sample, also when the ACK itself gave none. */
WT_INLINE int hd_draw(struct sock *sk, struct hd *hd)
{
	u32 delay = hd->ertt.rtt > hd->ertt.min ? hd->ertt.rtt - hd->ertt.min : 0;
	u64 chance;

	if (delay <= PARAM(sk, queue_min_us))
		return 0;
	chance = wt_hamilton(delay, hd->ertt.max - hd->ertt.min, PARAM(sk, queue_min_us),
			     PARAM(sk, queue_threshold_us), PARAM(sk, pmax_ppm));
	return wt_random(&hd->random) < chance;
}

WT_INLINE void hd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct hd *hd = wt_priv(sk);

	(void)ack;
	if (wt_in_recovery(sk, &hd->ertt))
		return;
	if (hd_draw(sk, hd))
		wt_delay_cut(sk, &hd->ertt, wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd));
	else
		wt_reno_grow(sk, acked);
}

WT_INLINE u32 hd_ssthresh(struct sock *sk)
{
	WT_COUNT(sk, losses);
	return wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_CONGESTION_CONTROL(hd, hd_init, hd_ssthresh, hd_cong_avoid, hd_acked, wt_no_event, wt_no_state)
