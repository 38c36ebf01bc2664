// The desk with slow tools whose delays have a long tail, for measuring what a GPU does meanwhile:
// `espalier train --environment ./scripts/gpu/slow-desk.ts#slow …`, mean seconds in SLOW_DESK_SECONDS.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment } from '../../src/base/core/environment.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import type { DeskTask } from '../../src/engine/environments/desk/task.ts'

const mean = Number(process.env.SLOW_DESK_SECONDS ?? 0.3)
const inner = desk()

/** Every step waits: most of them briefly, one in ten eight times as long. */
export const slow: Environment<DeskTask> = {
  ...inner,
  name: 'slow-desk',
  async open(task, call) {
    const world = await inner.open(task, call)
    return {
      ...world,
      async step(reply, own) {
        const tail = Math.random() < 0.1 ? 8 : 1
        const seconds = -Math.log(1 - Math.random()) * mean * 0.6 * tail
        await sleep(seconds * 1000, undefined, { signal: own.signal })
        return await world.step(reply, own)
      },
      [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
    }
  },
}
