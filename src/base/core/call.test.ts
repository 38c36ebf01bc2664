import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { whenAborted } from './call.ts'

it('calls everyone who still watches, over one listener', () => {
  const controller = new AbortController()
  const { signal } = controller
  const called: string[] = []
  const stop = whenAborted(signal, () => called.push('first'))
  whenAborted(signal, () => called.push('second'))
  stop()
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  controller.abort()
  expect(called).toEqual(['second'])
  whenAborted(signal, () => called.push('late'))
  expect(called).toEqual(['second', 'late'])
})
