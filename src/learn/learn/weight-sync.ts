import type { Call } from '../../base/core/call.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Trainer, TrainerStep } from '../../base/core/trainer.ts'

/**
 * Makes the policy's engines load the weights that a trainer writes to disk: after each step, or when
 * the trainer publishes, and after a checkpoint is loaded. A trainer that shares its weights with the
 * policy is returned unchanged.
 */
export function withWeightSync(trainer: Trainer, policy: Policy): Trainer {
  async function follow<T extends Pick<TrainerStep, 'version' | 'weights'>>(
    step: T,
    call: Call,
  ): Promise<T> {
    const { weights, version } = step
    if (!weights) return step
    if (!policy.weights) {
      throw new Error(
        `the trainer wrote weights to ${weights.path}, but ${policy.name} cannot load any: ` +
          'use --policy sglang:URL or vllm:URL',
      )
    }
    await policy.weights.update({ ...weights, version }, call)
    return step
  }
  return {
    name: trainer.name,
    ...(trainer.publish
      ? publishing(trainer, follow)
      : { step: async (groups, call) => await follow(await trainer.step(groups, call), call) }),
    save: (folder, call) => trainer.save(folder, call),
    load: async (folder, call) => await follow(await trainer.load(folder, call), call),
    [Symbol.asyncDispose]: () => trainer[Symbol.asyncDispose](),
  }
}

/** Steps during which the engines still serve the weights before; they load the new ones on `publish`. */
function publishing(
  trainer: Trainer,
  follow: (step: TrainerStep, call: Call) => Promise<TrainerStep>,
): Pick<Trainer, 'step' | 'publish'> {
  let learned: TrainerStep | undefined
  return {
    async step(groups, call) {
      learned = await trainer.step(groups, call)
      return learned
    },
    async publish(call) {
      await trainer.publish?.(call)
      if (learned) await follow(learned, call)
    },
  }
}
