import type { Call } from '../../base/core/call.ts'
import type { Group } from '../../base/core/group.ts'
import type { Trainer, TrainerStep } from '../../base/core/trainer.ts'

/** Runs work that changes the weights while nothing is sampled from them. */
export type ChangeWeights = (work: () => Promise<TrainerStep>) => Promise<TrainerStep>

/**
 * Takes one step of learning. Sampling waits for the whole step, or only for the publishing if the
 * trainer can publish; never for what is measured afterwards.
 */
export async function learnStep(
  groups: readonly Group[],
  { trainer, change }: { readonly trainer: Trainer; readonly change: ChangeWeights },
  call: Call,
): Promise<TrainerStep> {
  if (!trainer.publish) return await measured(await change(() => trainer.step(groups, call)))
  const learned = await trainer.step(groups, call)
  await change(async () => {
    await trainer.publish?.(call)
    return learned
  })
  return await measured(learned)
}

/** A step with what it measures in the end. */
export async function measured({ measure, ...step }: TrainerStep): Promise<TrainerStep> {
  if (!measure) return step
  const { metrics, ...more } = await measure()
  return { ...step, ...more, metrics: { ...step.metrics, ...metrics } }
}
