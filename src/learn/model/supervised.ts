import type { Message, Renderer } from '@espalier/text'
import { crossEntropyLoss } from '../../base/math/losses/cross-entropy.ts'
import { random, type Seed, seedOf, shuffle } from '../../base/math/random.ts'
import type { Conversation } from '../../run/demonstrations/conversation.ts'
import { openApart } from './apart.ts'
import type { EmbeddedModel, TrainingRow } from './model.ts'

/**
 * A conversation as a training row: the tokens a rollout of the same words would have, with the
 * assistant's turns to be learned. What follows the last of them is left out.
 */
export function conversationRow(renderer: Renderer, conversation: Conversation): TrainingRow {
  const { messages, tools, from = 0 } = conversation
  const turns = messages.flatMap(({ role }, index) =>
    role === 'assistant' && index >= from ? [index] : [],
  )
  const first = turns[0]
  if (first === undefined || first === 0) {
    throw new Error('A demonstration needs a message to answer, and an answer by the assistant.')
  }
  const path = new PathBuilder()
  path.append(renderer.render(messages.slice(0, first), tools), 0)
  turns.forEach((index, turn) => {
    const turnStart = path.length
    const message = messages[index] as Extract<Message, { role: 'assistant' }>
    path.append(renderer.encodeReply(message, tools), 1)
    const next = turns[turn + 1]
    if (next === undefined) return
    const observed = next - index - 1
    if (observed === 0) throw new Error('In a demonstration, something must answer every turn.')
    const request = {
      path: path.ids(),
      turnStart,
      messages: messages.slice(0, next),
      observed,
      tools,
    }
    const bridge = renderer.bridge(request)
    if (bridge.kind === 'rewrites') {
      throw new Error('A demonstration cannot be one row where the template rewrites history.')
    }
    path.append(bridge.ids, 0)
  })
  return { ids: path.ids(), mask: path.mask(), temperature: 1 }
}

class PathBuilder {
  readonly #ids: number[] = []
  readonly #mask: number[] = []

  get length(): number {
    return this.#ids.length
  }

  append(ids: Int32Array, mask: 0 | 1): void {
    for (const id of ids) {
      this.#ids.push(id)
      this.#mask.push(mask)
    }
  }

  ids(): Int32Array {
    return Int32Array.from(this.#ids)
  }

  mask(): Uint8Array {
    return Uint8Array.from(this.#mask)
  }
}

/** How a model is trained on rows. */
export interface SupervisedOptions {
  readonly seed: number
  /** Passes over all rows. @default 4 */
  readonly epochs?: number
  /** Rows per step. @default 32 */
  readonly batch?: number
  /** The highest rate; it rises over the first steps and falls to 0 in a straight line. @default 3e-3 */
  readonly learningRate?: number
  /** @default 0.01 */
  readonly weightDecay?: number
  readonly onStep?: (step: SupervisedStep) => void
  readonly signal?: AbortSignal
  /** Validation rows, measured but never trained: training stops before it memorises the others. */
  readonly apart?: readonly TrainingRow[]
  readonly onApart?: (measured: MeasuredApart) => void
}

/** One step of supervised training. */
export interface SupervisedStep {
  readonly step: number
  readonly steps: number
  /** Mean −log π of the learned tokens. */
  readonly loss: number
  readonly tokens: number
}

/** The loss on validation rows, beside that on trained rows. */
export interface MeasuredApart {
  readonly step: number
  readonly steps: number
  /** Mean −log π of trained rows since the last measurement, and of validation rows. */
  readonly trained: number
  readonly apart: number
  /** If training stops here: the step whose weights are used. */
  readonly stoppedFor?: number
}

/** Trains by cross-entropy on the assistant's turns; the same seed and kernel give the same bits. */
export async function trainSupervised(
  model: EmbeddedModel,
  rows: readonly TrainingRow[],
  options: SupervisedOptions,
): Promise<void> {
  const { epochs = 4, batch = 32, learningRate = 3e-3, weightDecay = 0.01 } = options
  const { seed, onStep, signal } = options
  const perEpoch = Math.ceil(rows.length / batch)
  const steps = epochs * perEpoch
  const warmup = Math.max(1, Math.floor(steps / 20))
  await using watch = await openApart(model, { ...options, steps })
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = shuffle(rows, random(epochSeed(seed, epoch)))
    for (let index = 0; index < perEpoch; index++) {
      signal?.throwIfAborted()
      const step = epoch * perEpoch + index
      const taken = order.slice(index * batch, (index + 1) * batch)
      const { loss, tokens } = await accumulate(model, taken)
      const rate = learningRate * Math.min((step + 1) / warmup, 1 - step / steps)
      await model.applyGradient({ learningRate: rate, clip: 1, weightDecay })
      onStep?.({ step, steps, loss, tokens })
      if (await watch.isOver(step, loss)) return
    }
  }
}

function epochSeed(seed: number, epoch: number): Seed {
  return seedOf(seed, 'supervised', epoch)
}

async function accumulate(
  model: EmbeddedModel,
  rows: readonly TrainingRow[],
): Promise<{ loss: number; tokens: number }> {
  const trajectory = Int32Array.from(rows, (_, row) => row)
  let tokens = 0
  const { loss } = await model.gradient(rows, numbers => {
    const { offsets, mask, logprobs } = numbers
    const result = crossEntropyLoss({ offsets, mask, trajectory, logprobs })
    tokens = mask.reduce((sum, trained) => sum + trained, 0)
    return { logprobGradient: result.gradient, loss: result.loss }
  })
  return { loss, tokens }
}
