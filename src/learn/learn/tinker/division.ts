import type { Call } from '../../../base/core/call.ts'
import type { MemberRow } from '../../../run/rows/row-record.ts'
import { toDatum } from '../../../run/sinks/formats/tinker.ts'
import type { FactorOptions } from '../row-factors.ts'
import type { ServerLoss } from './losses.ts'
import type { Learner } from './pass.ts'

/**
 * What the server divides a row's sum by. SkyRL's address may be served by either of two programs: its
 * JAX backend averages each row and reports no metrics; SkyRL-Train, on GPUs, sums and reports them. A
 * forward pass over one row finds out which it is.
 */
export async function findDivision(
  learner: Learner & { division?: FactorOptions['divides'] },
  { member, loss }: { readonly member: MemberRow; readonly loss: ServerLoss },
  call: Call,
): Promise<FactorOptions['divides']> {
  const { kind, model, passes } = learner
  if (!kind.mayDivideNothing) return kind.divides
  if (learner.division) return learner.division
  const data = [toDatum(member, { weights: true })]
  const pass = { modelId: model.id, seqId: model.next(), data, forwardOnly: true }
  const { metrics } = await passes.run({ ...pass, loss: 'cross_entropy' }, call)
  const isTrain = Object.keys(metrics).length > 0
  if (isTrain && loss.name === 'cispo') {
    throw new Error("SkyRL's GPU backends leave cispo's thresholds out: use --loss ppo")
  }
  learner.division = isTrain ? 'nothing' : kind.divides
  return learner.division
}
