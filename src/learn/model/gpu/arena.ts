import type { Card } from './card.ts'

/** Arrays for passes of up to so many tokens; a longer pass makes them anew. */
export class Arena<Name extends string> {
  readonly #card: Card
  readonly #sizes: Readonly<Record<Name, number>>
  #arrays: Readonly<Record<Name, GPUBuffer>> | undefined
  #tokens = 0

  /** `sizes`: words of each token, by array. */
  constructor(card: Card, sizes: Readonly<Record<Name, number>>) {
    this.#card = card
    this.#sizes = sizes
  }

  /** Arrays for so many tokens. */
  for(tokens: number): Readonly<Record<Name, GPUBuffer>> {
    if (this.#arrays && tokens <= this.#tokens) return this.#arrays
    this.free()
    this.#tokens = 2 ** Math.ceil(Math.log2(Math.max(tokens, 64)))
    const names = Object.keys(this.#sizes) as Name[]
    const taken = names.map(name => {
      return [name, this.#card.take(this.#tokens * this.#sizes[name] * 4, name)] as const
    })
    this.#arrays = Object.fromEntries(taken) as Record<Name, GPUBuffer>
    return this.#arrays
  }

  free(): void {
    if (this.#arrays) this.#card.free(Object.values<GPUBuffer>(this.#arrays))
    this.#arrays = undefined
  }
}
