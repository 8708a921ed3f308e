// SPDX-License-Identifier: GPL-2.0
#include "packet.h"
#include "ktap.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM		(1024 * 1024)	/* of a socket's buffer */
#define HEADER_SIZE	64		/* linear, of a packet with pages */
#define REQUEST_SIZE	256

static int ends[2] = { -1, -1 };

static void attach_filter(int program)
{
	int room = ROOM;

	if (ends[0] < 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		ktap_skip("AF_UNIX: %m");
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)))
		ktap_stop(RULE_TEST_SETUP "SO_ATTACH_BPF: %m");
}

/* What is larger than a page or so has pages anyway. */
static void send_datagram(const void *data, size_t size, bool paged)
{
	char byte;

	(void)paged;
	if (send(ends[0], data, size, MSG_DONTWAIT) != (ssize_t)size)
		ktap_stop(RULE_TEST_SETUP "a datagram of %zu bytes: %m", size);
	recv(ends[1], &byte, sizeof(byte), MSG_DONTWAIT);
}

static void detach_filter(void)
{
}

struct request {
	struct nlmsghdr header;
	struct tcmsg message;
	char attributes[REQUEST_SIZE];
};

static void *add_attribute(struct request *request, int type, const void *data,
			   size_t size)
{
	struct rtattr *attribute = (void *)((char *)request +
					    NLMSG_ALIGN(request->header.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attribute), data, size);
	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) +
				    RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void init_request(struct request *request, int type, const char *kind)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_len = NLMSG_LENGTH(sizeof(request->message));
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	request->message.tcm_ifindex = if_nametoindex("lo");
	if (kind)
		add_attribute(request, TCA_KIND, kind, strlen(kind) + 1);
}

/* Returns what the kernel says: 0 or -errno. */
static int ask(struct request *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char more[REQUEST_SIZE];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t got = -1;

	if (fd < 0)
		ktap_skip("NETLINK_ROUTE: %m");
	if (send(fd, request, request->header.nlmsg_len, 0) >= 0)
		got = recv(fd, &answer, sizeof(answer), 0);
	close(fd);
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(answer.error)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		ktap_stop(RULE_TEST_SETUP "no answer of NETLINK_ROUTE: %m");
	return answer.error.error;
}

static int frames = -1;

static void open_frames(void)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex("lo"),
	};
	struct ifreq interface = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int one = 1, room = ROOM;

	frames = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (frames < 0)
		ktap_skip("AF_PACKET: %m");
	if (ioctl(frames, SIOCSIFFLAGS, &interface) ||
	    bind(frames, (struct sockaddr *)&address, sizeof(address)))
		ktap_skip("lo: %m");
	setsockopt(frames, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (setsockopt(frames, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		ktap_skip("PACKET_VNET_HDR: %m");
}

static int remove_qdisc(void)
{
	struct request request;

	init_request(&request, RTM_DELQDISC, NULL);
	request.message.tcm_parent = TC_H_CLSACT;
	request.message.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	return ask(&request);
}

static void attach_classifier(int program)
{
	__u32 direct = TCA_BPF_FLAG_ACT_DIRECT;
	struct request request;
	struct rtattr *options;
	int error;

	if (frames < 0)
		open_frames();
	remove_qdisc();		/* of a case that did not come to its end */
	init_request(&request, RTM_NEWQDISC, "clsact");
	request.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
	request.message.tcm_parent = TC_H_CLSACT;
	request.message.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	error = ask(&request);
	if (error)
		ktap_skip("no qdisc clsact: %s", strerror(-error));
	init_request(&request, RTM_NEWTFILTER, "bpf");
	request.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
	request.message.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
	request.message.tcm_info = TC_H_MAKE(1 << 16, htons(ETH_P_ALL));
	options = add_attribute(&request, TCA_OPTIONS, NULL, 0);
	add_attribute(&request, TCA_BPF_FD, &program, sizeof(program));
	add_attribute(&request, TCA_BPF_NAME, "test", sizeof("test"));
	add_attribute(&request, TCA_BPF_FLAGS, &direct, sizeof(direct));
	options->rta_len = (char *)&request + request.header.nlmsg_len - (char *)options;
	error = ask(&request);
	if (error)
		ktap_skip("no classifier bpf: %s", strerror(-error));
}

static void send_frame(const void *data, size_t size, bool paged)
{
	struct virtio_net_hdr header = { .hdr_len = paged ? HEADER_SIZE : size };
	struct iovec parts[2] = {
		{ &header, sizeof(header) },
		{ (void *)data, size },
	};

	if (writev(frames, parts, 2) != (ssize_t)(sizeof(header) + size))
		ktap_stop(RULE_TEST_SETUP "a frame of %zu bytes on lo: %m", size);
}

static void detach_classifier(void)
{
	int error = remove_qdisc();

	if (error)
		ktap_stop(RULE_TEST_SETUP "the qdisc clsact stays: %s", strerror(-error));
}

const struct packet_path packet_paths[PACKET_PATHS] = {
	{ "socket_filter", BPF_PROG_TYPE_SOCKET_FILTER, -1,
	  attach_filter, send_datagram, detach_filter },
	{ "classifier", BPF_PROG_TYPE_SCHED_CLS, 0,
	  attach_classifier, send_frame, detach_classifier },
};
