import type { Trainer } from '../../base/core/trainer.ts'
import { copyModel, type EmbeddedModel } from '../model/model.ts'
import { type EmbeddedTrainerOptions, embeddedTrainer } from './embedded-trainer.ts'

/**
 * Opens an embedded trainer that learns in its own copy of the sampled model, on its own threads, so
 * that sampling goes on during a step. `publish` gives the sampled model all weights at once, with
 * their version, between two samples. While it is open, sampling has half of its threads: samples are
 * short steps, and threads that wait for each other in every one of them would wait for the trainer's
 * too. Learning has all of its own, so that no core is idle while sampling waits.
 */
export async function openTrainerApart(
  sampled: EmbeddedModel,
  options: EmbeddedTrainerOptions,
): Promise<Trainer> {
  const own = await copyModel(sampled)
  await sampled.useThreads(Math.ceil(sampled.threads / 2))
  const trainer = embeddedTrainer(own, options)
  let learned = await own.weights()
  const publish = (): Promise<void> => sampled.take(learned)
  return {
    ...trainer,
    async step(groups, call) {
      const step = await trainer.step(groups, call)
      // Fetched while sampling still goes on.
      learned = await own.weights()
      return step
    },
    publish,
    async load(folder, call) {
      const loaded = await trainer.load(folder, call)
      learned = await own.weights()
      await publish()
      return loaded
    },
    async [Symbol.asyncDispose]() {
      await own[Symbol.asyncDispose]()
      // A model that was closed meanwhile has no threads to get back.
      await sampled.useThreads(sampled.threads).catch(() => {})
    },
  }
}
