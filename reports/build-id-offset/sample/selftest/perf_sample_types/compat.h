/* SPDX-License-Identifier: GPL-2.0 */
/* Generated: what this tree's linux/perf_event.h lacks of what the tests name. */
#ifndef COMPAT_H
#define COMPAT_H

#include <linux/perf_event.h>


/* attr.defer_callchain and attr.defer_output */
#define HAVE_DEFER_CALLCHAIN 1
/* attr.sample_max_stack */
#define HAVE_SAMPLE_MAX_STACK 1
/* perf_mem_data_src.mem_lvl_num */
#define HAVE_MEM_LVL_NUM 1
/* attr.build_id */
#define HAVE_BUILD_ID 1
/* attr.namespaces */
#define HAVE_NAMESPACES 1
/* attr.ksymbol and attr.bpf_event */
#define HAVE_KSYMBOL 1

#endif
