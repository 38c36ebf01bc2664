import { EventEmitter, once } from 'node:events'

/** A count that somebody can wait for. */
export class Counter {
  readonly #raised = new EventEmitter().setMaxListeners(0)
  #value = 0

  get value(): number {
    return this.#value
  }

  raise(): void {
    this.#value++
    this.#raised.emit('raised')
  }

  /** Resolves when it is as high as this. */
  async reached(value: number): Promise<void> {
    while (this.#value < value) await once(this.#raised, 'raised')
  }
}
