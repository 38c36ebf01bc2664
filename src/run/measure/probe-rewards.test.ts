import { expect, it } from 'vitest'
import type { Task } from '../../base/core/environment.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { probeRewards } from './probe-rewards.ts'

it('is over when it is stopped, also if a reward never answers', async () => {
  const stop = new AbortController()
  const slow = (): Promise<never> => {
    queueMicrotask(() => stop.abort(new Error('interrupted')))
    return new Promise<never>(() => {})
  }
  const environment = { ...singleTurn(), reward: { slow } }
  const tasks = [{ id: 'one', data: { prompt: 'Well?', answer: 'yes' } }] as unknown as Task[]
  const probing = probeRewards(environment as never, tasks, { signal: stop.signal, seed: 1 })
  await expect(probing).rejects.toThrow('interrupted')
})
