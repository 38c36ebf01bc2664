import { expect, it } from 'vitest'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { type TeachOptions, teach } from './teach.ts'

const tasks = [{ prompt: 'Well?', answer: 'yes' }]
const show = (): undefined => undefined

it.each([
  [undefined, /^options: undefined is not possible/],
  [{ seed: 1 }, /^options: .*show: expected a function/],
  [{ show }, /^options: .*seed: /],
  [{ show, seed: 1, epoch: 3 }, /^options: .*"epoch"\. Did you mean "epochs"\?/],
  [{ show, seed: 1, epochs: 0 }, /^options: .*epochs: .*>=1/],
  [{ show, seed: 1, learningRate: -1 }, /^options: .*learningRate: /],
  [{ show: (): number => 5, seed: 1 }, /^show gave 5: it gives words, a call/],
])('refuses options that nothing can be taught with: %j', async (options, message) => {
  const wrong = options as unknown as TeachOptions<unknown>
  await expect(teach(singleTurn(), tasks, wrong)).rejects.toThrow(message)
})

it('is over when it is stopped, also if a world never opens', async () => {
  const stop = new AbortController()
  const hanging = {
    ...singleTurn(),
    open() {
      queueMicrotask(() => stop.abort(new Error('interrupted')))
      return new Promise<never>(() => {})
    },
  }
  const options = { show, seed: 1, signal: stop.signal }
  await expect(teach(hanging, tasks, options)).rejects.toThrow('interrupted')
})
