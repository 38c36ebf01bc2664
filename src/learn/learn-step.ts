import type { Call } from '../core/call.ts'
import type { Group } from '../core/group.ts'
import type { Trainer, TrainerStep } from '../core/trainer.ts'

/** Runs work that changes the weights while nothing is sampled from them. */
export type ChangeWeights = (work: () => Promise<TrainerStep>) => Promise<TrainerStep>

/**
 * Takes one step of learning. Sampling waits for the whole step, or only for the publishing if the
 * trainer can publish.
 */
export async function learnStep(
  groups: readonly Group[],
  { trainer, change }: { readonly trainer: Trainer; readonly change: ChangeWeights },
  call: Call,
): Promise<TrainerStep> {
  if (!trainer.publish) return await change(() => trainer.step(groups, call))
  const learned = await trainer.step(groups, call)
  return await change(async () => {
    await trainer.publish?.(call)
    return learned
  })
}
