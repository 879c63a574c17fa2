/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * When a response begins and ends, on Linux 6.15.
 *
 * What is written without a pause in which all was acknowledged is one response. The kernel tells of a write when it is done: who
 * waits for room in the send buffer within one is seen by what is queued beyond the bytes that were told.
 */
/* What comes after the last byte written so far: a FIN that is sent or queued counts as one, too. */
INLINE u32 end_of(struct tcp_sock *tcp)
{
	u32 state = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_state;

	return tcp->write_seq - (FIN_SENT >> (state & 31) & 1);
}

/* For how long something was outstanding since the last response ended; 0 where that is too short for the kernel's clock. */
INLINE u64 waited_ns(struct tcp_sock *tcp, struct note *n, u64 now)
{
	u64 jiffies = jiffies64();
	u32 waited = busy_of(tcp, jiffies) - n->busy_jiffies;

	if (waited < 2 || waited >= 1 << 30 || jiffies <= n->since_jiffies)
		return 0;
	return (now - n->since_ns) / (jiffies - n->since_jiffies) * waited;
}

/* Something was written: a response begins, or the one that is under way gets longer. */
INLINE void written(struct bpf_sock_ops *s, void *sk, struct note *n)
{
	struct tcp_sock *tcp = to_tcp_sock(sk);
	u64 now;

	if (!tcp || n->responses >= RESPONSES_TOLD)
		return;
	if (!n->under_way) {
		now = now_ns();
		/* Who waits for room while it writes is seen here when it is done. */
		n->began_ns = now - waited_ns(tcp, n, now);
		n->begin_seq = n->end_seq;
		n->under_way = 1;
	}
	n->end_seq = end_of(tcp);
	bpf_sock_ops_enable_tx_tstamp(bpf_cast_to_kern_ctx(s), 0);
}

/* Whoever waits for room within the first write of a response hasn't been seen here yet: when that one began, or 0. */
INLINE u64 began_unseen(struct tcp_sock *tcp, struct note *n, u64 now)
{
	u64 waited;

	if (n->under_way || n->responses >= RESPONSES_TOLD || (int)(end_of(tcp) - n->end_seq) <= 0)
		return 0;
	waited = waited_ns(tcp, n, now);
	return waited ? now - waited : 0;
}

/* A response ends. The last one of a connection goes with its record, the ones before are told as the next one ends. */
INLINE void responded(struct note *n, u64 now, u32 end)
{
	if (n->took_ns) {
		struct response *r = reserve(&records, sizeof(*r), 0);
		if (r) {
			fill_response(r, n);
			submit(r, 1);
		} else {
			count(RESPONSES_LOST);
		}
	}
	n->took_ns = now > n->began_ns ? now - n->began_ns : 1;
	n->ended_ns = now;
	n->took_bytes = end - n->begin_seq;
	n->responses++;
}

INLINE void acknowledged(void *sk, struct note *n)
{
	struct tcp_sock *tcp = to_tcp_sock(sk);
	u32 end;

	if (!tcp || !n->under_way || (int)(tcp->snd_una - n->end_seq) < 0)
		return;
	end = end_of(tcp);
	if (end != n->end_seq) {
		/* Somebody waits for room within the next write, which is told when it is done. */
		n->end_seq = end;
		return;
	}
	responded(n, now_ns(), n->end_seq);
	n->under_way = 0;
	n->busy_jiffies = busy_of(tcp, jiffies64());
}

/* At a connection's end: what is under way comes no further. */
INLINE void broken_off(void *sk, struct note *n, u64 now)
{
	struct tcp_sock *tcp = to_tcp_sock(sk);
	u64 began;
	u32 end;

	if (!tcp)
		return;
	if (!n->under_way) {
		began = began_unseen(tcp, n, now);
		if (!began)
			return;
		n->began_ns = began;
		n->begin_seq = n->end_seq;
		n->under_way = 1;
	}
	n->end_seq = end_of(tcp);
	end = tcp->snd_una;
	if ((int)(end - n->end_seq) >= 0) {
		end = n->end_seq;
		n->under_way = 0; /* nobody told that all of it was acknowledged */
		if (n->finished_ns > n->began_ns)
			now = n->finished_ns;
	}
	responded(n, now, end);
}
