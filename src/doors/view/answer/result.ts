import { z } from 'zod'
import type { Json } from '../../../base/core/ids.ts'
import type { RunResult, RunSums, VerdictAnswer } from '../answers.ts'

/** What a report says in a line; a report of somebody else's making may lack any of it. */
const reportShape = z.object({
  trajectories: z.int().catch(0),
  success: z
    .object({ rate: z.number(), interval: z.object({ low: z.number(), high: z.number() }) })
    .nullable()
    .catch(null),
  outcomes: z.record(z.string(), z.number()).catch({}),
  training: z
    .object({
      successBefore: z.number(),
      successAfter: z.number(),
      verdict: z.object({ finding: z.string(), text: z.string() }).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
})

/** What came of a run; nothing while it has no report. */
export function resultOf(report: Json): RunResult | undefined {
  const read = reportShape.safeParse(report)
  if (!read.success) return undefined
  const { trajectories, success, outcomes, training } = read.data
  const failed = Object.entries(outcomes).filter(([name]) => /^(?:failed|aborted)/.test(name))
  return {
    before: training?.successBefore ?? null,
    success: training?.successAfter ?? success?.rate ?? null,
    failed: failed.reduce((sum, [, count]) => sum + count, 0),
    trajectories,
  }
}

/** Success as a report states it, which knows how attempts share their endings. */
export function reportedSuccess(report: Json): RunSums['success'] {
  const { rate, interval } = reportShape.safeParse(report).data?.success ?? {}
  return rate === undefined || interval === undefined ? null : { rate, ...interval }
}

/** What a training run says of itself. */
export function verdictAnswer(report: Json): VerdictAnswer | undefined {
  const { finding, text } = reportShape.safeParse(report).data?.training?.verdict ?? {}
  if (finding === undefined || text === undefined) return undefined
  return { isGood: finding === 'learned' || finding === 'solved', text }
}
