import type { Duplex } from 'node:stream'

/**
 * The connections of a door. When there are too many, the stranger leaves that came first: who was let in keeps
 * its connection, and who may be let in finds room beside any number of strangers.
 */
export class Visitors {
  readonly #most: number
  readonly #strangers = new Set<Duplex>()
  readonly #known = new Set<Duplex>()

  constructor(most: number) {
    this.#most = most
  }

  take(connection: Duplex): void {
    this.#strangers.add(connection)
    connection.once('close', () => this.#forget(connection))
    const [first] = this.#strangers
    if (!first || this.#strangers.size + this.#known.size <= this.#most) return
    this.#forget(first)
    first.destroy()
  }

  /** A request over this connection was let in. */
  letIn(connection: Duplex): void {
    if (this.#strangers.delete(connection)) this.#known.add(connection)
  }

  #forget(connection: Duplex): void {
    this.#strangers.delete(connection)
    this.#known.delete(connection)
  }
}
