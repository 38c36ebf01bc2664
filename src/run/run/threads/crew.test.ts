import { describe, expect, it, vi } from 'vitest'
import type { GroupId } from '../../../base/core/ids.ts'
import type { RunEvent } from '../../watch/events.ts'
import type { GroupWork, MadeGroup, Piece, Work } from '../elsewhere.ts'
import { Crew } from './crew.ts'
import type { AnsweringGroup, RollThread, ThreadNews } from './thread.ts'

/** A thread that does as the test says. */
interface FakeThread {
  readonly making: { readonly work: Work; end(error?: Error): void }[]
  readonly groups: MakingGroup[]
  paused: number
  /** Kills it: whatever it makes is lost. */
  die(): void
}

/** A group that a thread makes. */
interface MakingGroup extends AnsweringGroup {
  readonly work: GroupWork
}

/** So many trees of a group; with the last ones comes the group. */
function pieceOf(trees: number, isWhole = false): Piece {
  const group = isWhole && ({ line: '' } as MadeGroup)
  return { count: trees, sampled: trees, ...(group && { group }) } as Piece
}

function openFakes(widths: readonly number[], { atOnce = 9, areStarted = true } = {}) {
  const threads: FakeThread[] = []
  const start = (_place: number, { onLost }: ThreadNews): RollThread => {
    const fake: FakeThread = {
      making: [],
      groups: [],
      paused: 0,
      die() {
        onLost()
        for (const each of fake.making.splice(0)) each.end(new Error('it died'))
        for (const each of fake.groups.splice(0)) each.reject(new Error('it died'))
      },
    }
    threads.push(fake)
    return {
      ready: Promise.resolve(),
      make(work, _making, { resolve, reject }) {
        const end = (error?: Error): void =>
          error ? reject(error) : resolve({ kind: 'made', trees: [], members: [], events: [] })
        const made = { work, end }
        fake.making.push(made)
        return () => void fake.making.splice(fake.making.indexOf(made), 1)
      },
      makeGroup(work, _making, answering) {
        const made = { work, ...answering }
        fake.groups.push(made)
        return () => void fake.groups.splice(fake.groups.indexOf(made), 1)
      },
      pause: async () => void fake.paused++,
      resume: async () => {},
      close: async () => {},
    }
  }
  const weighs = (): boolean => true
  const rest = { weighs, packWeights: async () => null, tell: () => {} }
  const crew = new Crew({ widths, atOnce, start, ...rest })
  if (areStarted) void crew.ready()
  return { crew, threads }
}

const workOf = (member: number): Work =>
  ({ group: 'g' as GroupId, member, seed: 0 }) as Partial<Work> as Work

const groupOf = (members: number): GroupWork =>
  ({ group: 'g' as GroupId, members, seed: 0 }) as Partial<GroupWork> as GroupWork

const { signal } = new AbortController()
/** Everything that follows at once has followed. */
const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('threads that make attempts', () => {
  it('are started when there is work for them, no more than attempts', async () => {
    const { crew, threads } = openFakes(Array(100).fill(1), { atOnce: 100, areStarted: false })
    await settle()
    expect(threads).toHaveLength(0)
    const made = [0, 1, 2].map(member => crew.make(workOf(member), { signal }))
    await settle()
    expect(threads).toHaveLength(3)
    for (const { making } of threads) for (const each of making.splice(0)) each.end()
    await Promise.all(made)
    void crew.make(workOf(3), { signal })
    await settle()
    expect(threads).toHaveLength(3)
  })

  it('are started a few at a time', async () => {
    const { crew, threads } = openFakes(Array(9).fill(1), { atOnce: 2, areStarted: false })
    for (let member = 0; member < 20; member++) void crew.make(workOf(member), { signal })
    expect(threads).toHaveLength(2)
    await settle()
    expect(threads).toHaveLength(9)
  })

  it('are given attempts by their share, and a few to go on with', async () => {
    const { crew, threads } = openFakes([4, 2])
    await settle()
    for (let member = 0; member < 20; member++) void crew.make(workOf(member), { signal })
    expect(threads.map(({ making }) => making.length)).toEqual([5, 3])
    expect(crew.room).toBe(8)
    threads[1]!.making.shift()!.end()
    await settle()
    expect(threads.map(({ making }) => making.length)).toEqual([5, 3])
  })

  it('are all told of at the end, also of a run that ends between two looks', async () => {
    const { crew, threads } = openFakes([1, 1])
    const told: RunEvent[] = []
    const stop = crew.watch(event => void told.push(event))
    await settle()
    const made = [0, 1].map(member => crew.make(workOf(member), { signal }))
    await settle()
    for (const { making } of threads) for (const { end } of making) end()
    await Promise.all(made)
    expect(told).toEqual([])
    stop()
    stop()
    const workers = [
      { thread: 1, done: 1 },
      { thread: 2, done: 1 },
    ]
    expect(told).toMatchObject([{ kind: 'workers', workers }])
  })

  it('[S2] lose what they make when they die, and others make it again', async () => {
    const { crew, threads } = openFakes([1, 1])
    await settle()
    const made = [0, 1].map(member => crew.make(workOf(member), { signal }))
    threads[0]!.die()
    await settle()
    expect(threads).toHaveLength(3)
    for (const { making } of threads) for (const each of making.splice(0)) each.end()
    await settle()
    for (const { making } of threads) for (const each of making.splice(0)) each.end()
    const kinds = (await Promise.all(made)).map(({ kind }) => kind)
    expect(kinds).toEqual(['made', 'made'])
  })

  it('[S2] give an attempt up that kills four of them, the last two alone with it', async () => {
    const { crew, threads } = openFakes([2, 2])
    await settle()
    const poisoned = crew.make(workOf(0), { signal })
    const others = [1, 2, 3].map(member => crew.make(workOf(member), { signal }))
    const alone: boolean[] = []
    for (let time = 0; time < 4; time++) {
      const killed = threads.find(({ making }) => making.some(({ work }) => work.member === 0))!
      alone.push(killed.making.length === 1)
      killed.die()
      await settle()
      // What was in the same hands is made elsewhere meanwhile.
      for (const { making } of threads) {
        for (const each of [...making]) {
          if (each.work.member === 0) continue
          making.splice(making.indexOf(each), 1)
          each.end()
        }
      }
      await settle()
    }
    expect(await poisoned).toMatchObject({ kind: 'poisoned' })
    expect((await poisoned) as object).toHaveProperty('reason', expect.stringContaining('4 times'))
    expect(alone.slice(2)).toEqual([true, true])
    expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(['made', 'made', 'made'])
  })

  it('begin nothing that was withdrawn while it waited', async () => {
    const { crew, threads } = openFakes([1])
    await settle()
    const stop = new AbortController()
    for (let member = 0; member < 2; member++) void crew.make(workOf(member), { signal })
    const withdrawn = crew.make(workOf(2), { signal: stop.signal })
    stop.abort(new Error('no more'))
    await expect(withdrawn).rejects.toThrow('no more')
    for (const each of threads[0]!.making.splice(0)) each.end()
    await settle()
    expect(threads[0]!.making).toEqual([])
  })

  it('are told to leave an attempt that is withdrawn, and given another', async () => {
    const { crew, threads } = openFakes([1])
    await settle()
    const stop = new AbortController()
    const withdrawn = crew.make(workOf(0), { signal: stop.signal })
    for (let member = 1; member < 3; member++) void crew.make(workOf(member), { signal })
    const members = (): readonly number[] => threads[0]!.making.map(({ work }) => work.member)
    expect(members()).toEqual([0, 1])
    stop.abort(new Error('no more'))
    await expect(withdrawn).rejects.toThrow('no more')
    expect(members()).toEqual([1, 2])
  })

  it('are all paused, those that come in the place of dead ones too', async () => {
    const { crew, threads } = openFakes([1, 1])
    await settle()
    await crew.pause()
    threads[0]!.die()
    await settle()
    expect(threads.map(({ paused }) => paused)).toEqual([1, 1, 1])
  })

  it('make whole groups while there are enough for all, and spread the attempts of a few', async () => {
    const { crew, threads } = openFakes([4, 4])
    const call = { signal, onBegin: () => {}, onPiece: async () => {} }
    const few = crew.makeGroup(groupOf(4), call)
    await settle()
    expect(await few).toEqual({ kind: 'spread' })
    const many = Array.from({ length: 9 }, () => crew.makeGroup(groupOf(4), call))
    await settle()
    // Four to make, and a group to go on with.
    expect(threads.map(({ groups }) => groups.length)).toEqual([2, 2])
    const [first] = threads[0]!.groups
    first!.onPiece(pieceOf(3))
    expect(threads[0]!.groups).toHaveLength(3)
    first!.resolve({ kind: 'made', piece: pieceOf(1, true) })
    expect(await many[0]).toMatchObject({ kind: 'made' })
  })

  it('make a group whole however few there are, where they make one in a moment', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const { crew, threads } = openFakes([4, 4])
      const made = Array.from({ length: 8 }, (_, member) => crew.make(workOf(member), { signal }))
      await settle()
      for (const { making } of threads) for (const { end } of making) end()
      await Promise.all(made)
      vi.advanceTimersByTime(250)
      void crew.makeGroup(groupOf(4), { signal, onBegin: () => {}, onPiece: async () => {} })
      await settle()
      expect(threads.map(({ groups }) => groups.length)).toEqual([1, 0])
    } finally {
      vi.useRealTimers()
    }
  })

  it('[S2] say that a group is broken when they die, and leave one that is withdrawn', async () => {
    const { crew, threads } = openFakes([2, 2])
    const stop = new AbortController()
    const began: number[] = []
    const ask = (at: number) =>
      crew.makeGroup(groupOf(2), {
        signal: at === 3 ? stop.signal : signal,
        onBegin: () => void began.push(at),
        onPiece: async () => {},
      })
    const made = Array.from({ length: 8 }, (_, at) => ask(at))
    await settle()
    expect(began).toEqual([0, 1, 2, 3])
    threads[0]!.die()
    expect(await made[0]).toEqual({ kind: 'broken', tries: 1 })
    stop.abort(new Error('no more'))
    await expect(made[3]).rejects.toThrow('no more')
    await settle()
    // A third thread is in the place of the first, and what was withdrawn leaves room for another.
    expect(threads.map(({ groups }) => groups.length)).toEqual([0, 2, 2])
    expect(began).toEqual([0, 1, 2, 3, 4, 5, 6])
  })
})
