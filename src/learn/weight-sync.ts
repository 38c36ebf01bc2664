import type { Call } from '../core/call.ts'
import type { Policy } from '../core/policy.ts'
import type { Trainer, TrainerStep } from '../core/trainer.ts'

/**
 * A trainer that writes its weights to disk, with the engines of a policy following it: after each
 * step, and where it goes on from a checkpoint, they load what it wrote. One whose weights are shared
 * with the policy is left as it is.
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
    step: async (groups, call) => await follow(await trainer.step(groups, call), call),
    save: (folder, call) => trainer.save(folder, call),
    load: async (folder, call) => await follow(await trainer.load(folder, call), call),
    [Symbol.asyncDispose]: () => trainer[Symbol.asyncDispose](),
  }
}
