import type { Engine, Learner } from '../engine/engine.ts'
import type { Part, Stepper } from '../engine/stepper.ts'
import type {
  AdapterOrder,
  OptimizerState,
  RowGradients,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import type { ModelShape } from '../shape.ts'
import type { Tensor } from '../tensor.ts'
import { Card, type FoundCard, LostError } from './card.ts'
import { Layers } from './layers.ts'
import { CardLearner } from './learner.ts'
import { CardStepper } from './stepper.ts'
import { loadWeights } from './weights.ts'

/** What an engine on a card is opened with. */
export interface CardEngineOptions {
  readonly path: string
  readonly shape: ModelShape
  readonly found: FoundCard
  /** Finds a card again when one was lost. */
  readonly find: () => Promise<FoundCard | undefined>
  /** Hears that a card was lost, and that the work goes on. */
  readonly tell: (text: string) => void
}

/** A model in a card's memory. */
interface Body {
  readonly card: Card
  readonly stepper: CardStepper
  readonly learner: CardLearner
}

/** What is known of the last step: enough to begin again behind it. */
interface Remembered {
  readonly order: AdapterOrder
  readonly state: OptimizerState
}

/** Cards that may be lost over the same work, before it is given up. */
const patience = 3

/** Opens a pretrained model on a card; one that is lost is opened again, behind the last step. */
export async function openCardEngine(options: CardEngineOptions): Promise<CardEngine> {
  return new CardEngine(options, await makeBody(options.found, options))
}

async function makeBody(
  found: FoundCard,
  { path, shape }: Pick<CardEngineOptions, 'path' | 'shape'>,
): Promise<Body> {
  const card = await Card.open(found)
  const layers = new Layers(card, shape, loadWeights(card, path, { shape, largest: found.largest }))
  const [stepper, learner] = [new CardStepper(layers), new CardLearner(layers)]
  await card.settle()
  return { card, stepper, learner }
}

/** A card's stepper and learner; what a lost card had is computed again on the next. */
export class CardEngine implements Engine {
  readonly #options: CardEngineOptions
  readonly device: string
  #body: Body
  #last: Remembered | undefined
  /** Gradients that were added up since. */
  #since: { readonly rows: readonly RowOrder[]; readonly gradients: RowGradients }[] = []
  #rows: readonly RowOrder[] = []
  #losses = 0
  readonly stepper: Stepper
  readonly learner: Learner

  constructor(options: CardEngineOptions, body: Body) {
    this.#options = options
    this.device = options.found.description
    this.#body = body
    this.stepper = this.#makeStepper()
    this.learner = this.#makeLearner()
  }

  /** The card as it is now. */
  get card(): Card {
    return this.#body.card
  }

  useThreads(): void {}

  close(): void {
    this.card.close()
  }

  #makeStepper(): Stepper {
    const now = () => this.#body.stepper
    const { slots, blocks, context } = now()
    return {
      ...{ slots, blocks, context },
      next: running => now().next(running),
      place: () => now().place(),
      copyBlock: (from, to) => now().copyBlock(from, to),
      step: parts => this.#step(parts),
      token: row => now().token(row),
      likeliest: (row, count) => now().likeliest(row, count),
    }
  }

  #makeLearner(): Learner {
    const now = () => this.#body.learner
    return {
      adapt: order => this.#change(async () => now().adapt(order), order.shape),
      forward: (rows, options) => {
        this.#rows = rows
        return this.#survive(() => now().forward(rows, options))
      },
      backward: gradients => this.#backward(gradients),
      update: order => this.#update(order),
      tensors: () => this.#survive(() => now().tensors()),
      takeTensors: tensors => this.#change(async () => now().takeTensors(tensors)),
      state: version => this.#survive(() => now().state(version)),
      takeState: state => this.#change(async () => now().takeState(state)),
    }
  }

  async #step(parts: readonly Part[]): Promise<'done' | 'lost'> {
    let isWhole = true
    await this.#survive(
      async () => {
        if (isWhole) await this.#body.stepper.step(parts)
      },
      () => {
        isWhole = false
      },
    )
    return isWhole ? 'done' : 'lost'
  }

  async #backward(gradients: RowGradients): Promise<void> {
    const rows = this.#rows
    let isKept = true
    await this.#survive(
      async () => {
        const { learner } = this.#body
        if (!isKept) await learner.forward(rows, { keep: true })
        await learner.backward(gradients)
      },
      () => {
        isKept = false
      },
    )
    this.#since.push({ rows, gradients })
  }

  async #update(order: UpdateOrder): Promise<number> {
    return await this.#survive(async () => {
      const norm = await this.#body.learner.update(order)
      await this.#remember()
      return norm
    })
  }

  async #change(work: () => Promise<void>, shape = this.#last?.order.shape): Promise<void> {
    await this.#survive(async () => {
      await work()
      if (shape) await this.#remember(shape)
    })
  }

  /** Copies what is trained to where no card can lose it. */
  async #remember(shape = this.#last!.order.shape): Promise<void> {
    const { learner } = this.#body
    const tensors: readonly Tensor[] = await learner.tensors()
    const state = await learner.state(0)
    this.#last = { order: { shape, factors: { tensors } }, state }
    this.#since = []
  }

  /** Does some work; if the card is lost over it, once more on the next. */
  async #survive<T>(work: () => Promise<T>, onLost: () => void = () => {}): Promise<T> {
    for (;;) {
      try {
        const done = await work()
        this.#losses = 0
        return done
      } catch (cause) {
        if (!(cause instanceof LostError)) throw cause
        await this.#revive(cause)
        onLost()
      }
    }
  }

  async #revive(cause: LostError): Promise<void> {
    const { find, tell } = this.#options
    const found = this.#losses++ < patience ? await find() : undefined
    if (!found) {
      const again = 'a run that was saved goes on with `espalier resume RUN`'
      throw new Error(
        `${cause.message} It did not come back: ${again}, with --device cpu if need be.`,
        {
          cause,
        },
      )
    }
    this.#body = await makeBody(found, this.#options)
    const { learner } = this.#body
    if (this.#last) {
      await learner.adapt(this.#last.order)
      await learner.takeState(this.#last.state)
    }
    for (const { rows, gradients } of this.#since) {
      await learner.forward(rows, { keep: true })
      await learner.backward(gradients)
    }
    tell(`${cause.message} The work goes on behind the last step, on ${found.description}.`)
  }
}
