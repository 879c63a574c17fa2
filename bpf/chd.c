/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CHD, the CAIA-Hamilton control: HD's probability drawn once per round trip, losses tolerated while the queue is short, and a
 * shadow window that remembers what delay back-offs gave up, for when others fill the queue.
 * Hayes, Armitage: LCN 2010, pp. 24-31 (10.1109/LCN.2010.5735714); cc_chd(4) of FreeBSD.
 */
#define PARAMS(X)                                                                                             \
	X(queue_threshold_us, 20000) X(queue_min_us, 5000) X(pmax_ppm, 500000) X(loss_fair, 1) X(use_max, 1)
#include "windtunnel_cc.h"

struct chd {
	struct wt_ertt ertt;
	u32 random;
	u32 shadow;	   /* what the window would be without delay back-offs; 0: not kept */
	u32 round_max;	   /* largest RTT of this round trip */
	u32 last_cut_delay; /* the queueing delay at the previous delay back-off */
	u8 loss_compete;   /* whether others seem to fill the queue */
};

WT_INLINE void chd_init(struct sock *sk)
{
	struct chd *chd = wt_priv(sk);

	wt_ertt_begin(sk, &chd->ertt);
	chd->random = wt_random_begin(sk);
	chd->shadow = wt_tp(sk)->snd_cwnd;
	chd->round_max = 0;
	chd->last_cut_delay = 0;
	chd->loss_compete = 0;
}

/* Whether to back off, drawn once per round trip; also learns whether others fill the queue. */
WT_INLINE int chd_draw(struct sock *sk, struct chd *chd, u32 delay)
{
	u32 threshold = PARAM(sk, queue_threshold_us);
	u64 chance;
	int cut;

	if (delay <= PARAM(sk, queue_min_us)) {
		chd->loss_compete = 0;
		return 0;
	}
	chance = wt_hamilton(delay, chd->ertt.max - chd->ertt.min, PARAM(sk, queue_min_us), threshold,
			     PARAM(sk, pmax_ppm));
	cut = wt_random(&chd->random) < chance;
	if (delay <= threshold)
		chd->loss_compete = 0;
	else if (cut && PARAM(sk, loss_fair))
		chd->loss_compete = 1;
	return cut;
}

WT_INLINE void chd_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct chd *chd = wt_priv(sk);

	wt_guard(sk);
	/* An ACK without a sample of its own carries the latest one into its round trip, and may end that, too. */
	if (!wt_ertt_acked(sk, &chd->ertt, sample))
		wt_round_ends(wt_tp(sk), &chd->ertt);
	chd->round_max = wt_max(chd->round_max, chd->ertt.rtt);
}

/* FreeBSD takes half of the window's whole segments off, so that an odd one stays; at least two. */
WT_INLINE u32 chd_half(struct tcp_sock *tp, u32 cwnd)
{
	u32 window = wt_min(cwnd, (u32)wt_div(tp->snd_wnd, tp->mss_cache));

	return wt_max(window - window / 2, 2);
}

/* The end of a round trip: judges its delay; whether that cut the window. */
WT_INLINE int chd_round(struct sock *sk, struct chd *chd)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 rtt = PARAM(sk, use_max) ? chd->round_max : chd->ertt.rtt;
	u32 delay;

	chd->round_max = 0;
	if (!rtt || wt_in_recovery(sk, &chd->ertt))
		return 0;
	delay = rtt > chd->ertt.min ? rtt - chd->ertt.min : 0;
	if (!chd_draw(sk, chd, delay))
		return 0;
	/* A longer queue than at the last cut: others may be filling it. Else the shadow has nothing to remember. */
	if (chd->loss_compete || delay > chd->last_cut_delay)
		chd->shadow = wt_max(tp->snd_cwnd, chd->shadow);
	else
		chd->shadow = 0;
	chd->last_cut_delay = delay;
	wt_delay_cut(sk, &chd->ertt, chd_half(tp, tp->snd_cwnd));
	return 1;
}

/* NewReno's growth, but also in congestion recovery and when the program holds back; the shadow grows with the window. */
WT_INLINE void chd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct chd *chd = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 before = tp->snd_cwnd;

	(void)ack;
	if (wt_round_over(&chd->ertt) && chd_round(sk, chd))
		return;
	if (wt_in_slow_start(tp))
		acked = wt_slow_start(tp, acked);
	if (acked)
		wt_avoid(tp, tp->snd_cwnd, acked, 1);
	if (chd->shadow && tp->snd_cwnd > before)
		chd->shadow = wt_min(chd->shadow + tp->snd_cwnd - before, tp->snd_cwnd_clamp);
}

/* The loss rule: a loss counts as congestion only when the queue is longer than the threshold. */
WT_INLINE u32 chd_ssthresh(struct sock *sk)
{
	struct chd *chd = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 delay = wt_max(chd->ertt.rtt, chd->round_max) - chd->ertt.min;
	u32 window = tp->snd_cwnd;
	u32 threshold;

	WT_COUNT(sk, losses);
	if (!chd->ertt.recovering && delay > PARAM(sk, queue_threshold_us)) {
		if (chd->loss_compete)
			window = wt_max(window, chd->shadow);
		threshold = chd_half(tp, window);
	} else {
		WT_COUNT(sk, tolerated);
		threshold = wt_max(window, 2);
	}
	if (chd->shadow)
		chd->shadow = wt_max(chd->shadow / 2, 2);
	return threshold;
}

WT_INLINE void chd_event(struct sock *sk, u32 event)
{
	/* A timeout is always congestion: NewReno's rule, after chd_ssthresh() has been asked. */
	if (event == WT_EVENT_LOSS)
		wt_tp(sk)->snd_ssthresh = wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_CONGESTION_CONTROL(chd, chd_init, chd_ssthresh, chd_cong_avoid, chd_acked, chd_event, wt_no_state)
