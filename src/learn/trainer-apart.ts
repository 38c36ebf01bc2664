import type { Trainer } from '../core/trainer.ts'
import { copyModel, type EmbeddedModel } from '../model/model.ts'
import { type EmbeddedTrainerOptions, embeddedTrainer } from './embedded-trainer.ts'

/**
 * Opens an embedded trainer that learns in its own copy of the sampled model, on its own threads, so
 * that sampling goes on during a step. `publish` gives the sampled model all weights at once, with
 * their version, between two samples. The cores are not divided: both models have a thread for every
 * core, and their threads sleep without work, so that one model has all cores while the other waits.
 */
export async function openTrainerApart(
  sampled: EmbeddedModel,
  options: EmbeddedTrainerOptions,
): Promise<Trainer> {
  const own = await copyModel(sampled)
  const trainer = embeddedTrainer(own, options)
  const publish = async (): Promise<void> => sampled.take(await own.weights())
  return {
    ...trainer,
    publish,
    async load(folder, call) {
      const loaded = await trainer.load(folder, call)
      await publish()
      return loaded
    },
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  }
}
