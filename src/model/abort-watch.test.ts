import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { watchAbort } from './abort-watch.ts'

it('calls everyone who still watches, over one listener', () => {
  const controller = new AbortController()
  const { signal } = controller
  const called: string[] = []
  const stop = watchAbort(signal, () => called.push('first'))
  watchAbort(signal, () => called.push('second'))
  stop()
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  controller.abort()
  expect(called).toEqual(['second'])
  watchAbort(signal, () => called.push('late'))
  expect(called).toEqual(['second', 'late'])
})
