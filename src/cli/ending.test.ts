import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Ending } from './ending.ts'

class Left extends Error {}

/** A process that only remembers how it was ended. */
class PlayedProcess extends EventEmitter {
  exitCode: number | undefined
  readonly stdout = { writableLength: 0 }
  hasExited = false

  readonly exit = ((code?: number): never => {
    this.exitCode = code ?? this.exitCode
    this.hasExited = true
    this.emit('exit', this.exitCode ?? 0)
    throw new Left()
  }) as NodeJS.Process['exit']
}

function begin() {
  const process = new PlayedProcess()
  const told: string[] = []
  const stop = new AbortController()
  const tell = (line: string): void => void told.push(line)
  const ending = new Ending(process as unknown as NodeJS.Process, { tell, stop })
  return { process, told, stop, ending }
}

// What waits for the end of a played process must not wait in the one of the tests.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('says so and gives 1 where nothing is left to do before the command is over', () => {
  const { process, told } = begin()
  expect(() => process.emit('beforeExit', 0)).toThrow(Left)
  expect(process.exitCode).toBe(1)
  expect(told).toEqual([expect.stringMatching(/^espalier: .*promise that is never settled/)])
})

it('says so and gives 1 where other code ends the process before the command is over', () => {
  const { process, told } = begin()
  expect(() => process.exit(0)).toThrow(Left)
  expect(process.exitCode).toBe(1)
  expect(told).toEqual([expect.stringMatching(/ended the process \(process\.exit, code 0\)/)])
})

it('says nothing where the command is over, or was left on purpose', () => {
  const done = begin()
  done.ending.over(0)
  done.process.emit('beforeExit', 0)
  done.process.emit('exit', 0)
  const left = begin()
  expect(() => left.ending.leave(130)).toThrow(Left)
  expect([done.told, left.told]).toEqual([[], []])
  expect([done.process.exitCode, left.process.exitCode]).toEqual([0, 130])
})

it('[O1] a rejection that nobody handles is told once and stops nothing', () => {
  const { process, told, stop, ending } = begin()
  const stray = new Error('stray')
  for (let time = 0; time < 3; time++) process.emit('unhandledRejection', stray)
  expect(told).toEqual([expect.stringMatching(/^WARNING .*: stray/)])
  expect(stop.signal.aborted).toBe(false)
  ending.over(0)
  expect(process.exitCode).toBe(0)
})

it('[D1] tells ten different rejections, and that there are more', () => {
  const { process, told } = begin()
  for (let each = 0; each < 20; each++) process.emit('unhandledRejection', new Error(`no ${each}`))
  expect(told).toHaveLength(11)
  expect(told.at(-1)).toContain('further')
})

it('[O1] an exception that nobody catches stops the command in order, with code 1', () => {
  const { process, told, stop, ending } = begin()
  process.emit('uncaughtException', new Error('stray timer'))
  process.emit('uncaughtException', new Error('another'))
  expect(stop.signal.aborted).toBe(true)
  expect(told[0]).toMatch(/^espalier: .*stray timer/)
  expect(told).toHaveLength(1)
  ending.over(130)
  expect(process.exitCode).toBe(1)
})

it('ends after five seconds what still runs when the command is over, once all is written', () => {
  const { process, ending } = begin()
  process.stdout.writableLength = 1
  ending.over(0)
  vi.advanceTimersByTime(5000)
  expect(process.hasExited).toBe(false)
  process.stdout.writableLength = 0
  expect(() => vi.advanceTimersByTime(5000)).toThrow(Left)
  expect(process.exitCode).toBe(0)
})
