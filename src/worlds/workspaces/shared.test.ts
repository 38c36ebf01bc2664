import { expect, it } from 'vitest'
import { makeShared, neverStopped } from './shared.ts'

it('O1: who is stopped stops shared work for nobody else', async () => {
  let finish: (made: string) => void = () => {}
  const build = makeShared(() => new Promise<string>(resolve => (finish = resolve)))
  const stop = new AbortController()
  const first = build('folder', { signal: stop.signal })
  const second = build('folder', neverStopped)
  stop.abort(new Error('enough'))
  await expect(first).rejects.toThrow('enough')
  finish('image')
  expect(await second).toBe('image')
  expect(await build('folder', neverStopped)).toBe('image')
})

it('shared work that failed is tried again by whoever asks next', async () => {
  let tries = 0
  const build = makeShared(async () => {
    tries++
    if (tries === 1) throw new Error('no space')
    return 'image'
  })
  await expect(build('folder', neverStopped)).rejects.toThrow('no space')
  expect(await build('folder', neverStopped)).toBe('image')
})
