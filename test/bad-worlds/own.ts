import { z } from 'zod'
import type { Environment, Transition } from '../../src/base/core/environment.ts'
import { agent } from '../../src/engine/capture/agent.ts'
import { environment } from '../../src/engine/environments/environment.ts'
import type { WorldBehaviour } from '../../src/engine/environments/opened-world.ts'
import { type Builder, findWalls } from '../../src/worlds/sandboxes/walls.ts'
import { usualFolder, usualLimits, type Workspaces } from '../../src/worlds/workspaces/contract.ts'
import { localWorkspaces } from '../../src/worlds/workspaces/local.ts'
import { workspaceTools } from '../../src/worlds/workspaces/world/tools.ts'
import { call } from '../rolling.ts'
import type { KindOfWorld, Meeting } from './contract.ts'

const task = z.object({ bad: z.boolean() })
export const tasks = { bad: { bad: true }, good: { bad: false } }
/** The run's own clock, for worlds without another limit. */
export const clock = { limits: { seconds: 0.2 } }
const forever = (): Promise<never> => new Promise(() => {})
export const flood = 'x'.repeat(2 ** 24 + 1)
const said: Meeting['says'] = { bad: ['go', 'go'], good: ['go', 'go'] }

/** A world of the user's own whose first step is bad. */
function inProcess(
  bad: WorldBehaviour<unknown>['step'] & object,
  report: () => Promise<unknown> = async () => ({}),
): Meeting {
  const made = environment({
    name: 'own',
    task,
    open: ({ data }) => ({
      opening: [{ role: 'user', content: 'begin' }],
      step: (action, given) => (data.bad ? bad(action, given) : { kind: 'end' }),
      report,
    }),
    reward: { played: () => 1 },
  })
  return { environment: made as Environment, ...tasks, says: said }
}

const answering = (transition: unknown) => (): Meeting => inProcess(() => transition as Transition)

function circle(): object {
  const round: { self?: object } = {}
  round.self = round
  return round
}

export const inThisProcess: KindOfWorld = {
  kind: 'a world in this process',
  boundary: 'environment',
  cannot: { 'answers out of turn': 'it is a function, and gives one answer' },
  cases: [
    {
      badness: 'hangs',
      reason: 'aborted',
      meet: () => ({ ...inProcess(forever), options: clock }),
    },
    {
      badness: 'hangs',
      how: 'when it reports',
      reason: 'aborted',
      meet: () => ({ ...inProcess(() => ({ kind: 'end' }), forever), options: clock }),
    },
    {
      badness: 'dies',
      reason: /the roof fell in/,
      meet: () => inProcess(() => Promise.reject(new Error('the roof fell in'))),
    },
    {
      badness: 'lies',
      how: 'says what is no message',
      reason: /said what is no message: \{ role: 'user' \}/,
      meet: answering({ kind: 'continue', observed: [{ role: 'user' }] }),
    },
    {
      badness: 'lies',
      how: 'says a circle',
      reason: /said what is no message: .*Circular/,
      meet: answering({ kind: 'continue', observed: [{ role: 'user', content: circle() }] }),
    },
    {
      badness: 'lies',
      how: 'says an integer that JSON lacks',
      reason: /said what is no message: .*10n/,
      meet: answering({ kind: 'continue', observed: [{ role: 'user', content: 10n }] }),
    },
    {
      badness: 'lies',
      how: 'says nothing as a user',
      reason: /said what is no message: \{ role: 'user', content: null \}/,
      meet: answering({ kind: 'continue', observed: [{ role: 'user', content: null }] }),
    },
    {
      badness: 'lies',
      how: 'says a part without its text',
      reason: /said what is no message: /,
      meet: answering({
        kind: 'continue',
        observed: [{ role: 'user', content: [{ type: 'text' }] }],
      }),
    },
    {
      badness: 'lies',
      how: 'says calls that are none',
      reason: /said what is no message: /,
      meet: answering({
        kind: 'continue',
        observed: [{ role: 'assistant', content: '', tool_calls: [null] }],
      }),
    },
    {
      badness: 'lies',
      how: 'answers with nothing',
      reason: /neither continues nor ends: null/,
      meet: answering(null),
    },
    {
      badness: 'lies',
      how: 'records what is no list of calls',
      reason: /gave what is no list of calls: 5/,
      meet: answering({ kind: 'end', calls: 5 }),
    },
    {
      badness: 'lies',
      how: 'records what is no call',
      reason: /gave what is no record of a call: null/,
      meet: answering({ kind: 'end', calls: [null] }),
    },
    {
      badness: 'lies',
      how: 'ends by a limit that there is not',
      reason: /ended by 'boredom'/,
      meet: answering({ kind: 'end', limit: 'boredom' }),
    },
    {
      badness: 'lies',
      how: 'rewards with no number',
      reason: /rewarded a step with NaN/,
      meet: answering({ kind: 'end', reward: Number.NaN }),
    },
    {
      badness: 'lies',
      how: 'goes on without a word',
      reason: /goes on without saying anything/,
      meet: answering({ kind: 'continue', observed: [] }),
    },
    {
      badness: 'lies',
      how: 'opens with what is no message',
      reason: /said what is no message/,
      meet: () => ({
        ...inProcess(forever),
        environment: environment({
          name: 'own',
          task,
          open: ({ data }) => ({
            opening: [{ role: 'user', content: (data.bad ? 4 : 'begin') as string }],
          }),
          reward: { played: () => 1 },
        }) as Environment,
      }),
    },
    {
      badness: 'floods',
      reason: /said 16777217 characters at one time/,
      meet: answering({ kind: 'continue', observed: [{ role: 'user', content: flood }] }),
    },
  ],
}

/** A seat that somebody else plays, badly. */
const deal = agent({
  name: 'deal',
  seats: ['buyer', 'seller'],
  task,
  async run({ task: { bad }, seats, signal }) {
    const asked = [{ role: 'user', content: bad ? 'bad' : 'good' }] as const
    await seats.buyer.speaker.say([{ role: 'user', content: 'begin' }], { signal })
    const { message } = await seats.seller.speaker.say(asked, { signal })
    return { price: message.content }
  },
  reward: { agreed: ({ report }) => Number(report.price === '7') },
})

const seller =
  (bad: () => unknown, options: object = {}) =>
  (): Meeting => ({
    environment: deal as Environment,
    ...tasks,
    says: said,
    options: {
      ...options,
      seats: {
        seller: messages => (messages[0]?.content === 'bad' ? (bad() as string) : '7'),
      },
    },
  })

export const seatsOfOthers: KindOfWorld = {
  kind: 'a seat that another plays',
  boundary: 'policy',
  cannot: { 'answers out of turn': 'a seat is asked, and gives one answer' },
  cases: [
    { badness: 'hangs', reason: 'aborted', meet: seller(forever, clock) },
    {
      badness: 'dies',
      reason: /gone home/,
      meet: seller(() => {
        throw new Error('gone home')
      }),
    },
    { badness: 'lies', reason: /said 4, which is not a text/, meet: seller(() => 4) },
    { badness: 'floods', reason: /16777217 characters/, meet: seller(() => flood) },
  ],
}

/** An environment over workspaces; the bad task is worked at in the folder `/bad`. */
export function notes(workspaces: Workspaces): Meeting {
  const limits = { ...usualLimits, seconds: 5 }
  const made = environment({
    name: 'notes',
    task,
    async open({ data, signal, defer }) {
      const source = { puts: [], workingFolder: data.bad ? '/bad' : usualFolder }
      const workspace = await workspaces.open(source, { signal })
      defer(() => workspace[Symbol.asyncDispose]())
      return {
        opening: [{ role: 'user', content: 'Write.' }],
        tools: workspaceTools({ workspace, limits, folder: source.workingFolder }),
      }
    },
    reward: { done: ({ answer }) => Number(answer === 'done') },
  })
  const shell = [call('shell', { command: 'ls' }), 'done']
  return { environment: made as Environment, ...tasks, says: { bad: shell, good: shell } }
}

/** Walls that could be built when the run began, and cannot any more. */
const broken: Builder = {
  walls: findWalls(),
  enclose: () => ['espalier-no-such-walls'],
}

export const walls: KindOfWorld = {
  kind: 'a workspace within walls',
  boundary: 'environment',
  isHere: findWalls().by !== undefined,
  cannot: {
    hangs: 'a command is the policy’s own, is ended, and the policy is told',
    lies: 'the system says how a command ended',
    floods: 'output is the policy’s own, is cut, and the policy is told',
    'answers out of turn': 'a command ends once',
  },
  cases: [
    {
      badness: 'dies',
      reason: /walls around a command could not be built: .*espalier-no-such-walls/,
      meet() {
        const [fine, dead] = [undefined, broken].map(builder =>
          localWorkspaces({ limits: usualLimits, ...(builder && { builder }) }),
        )
        return notes({
          ...fine!,
          open: (source, given) =>
            source.workingFolder === '/bad' ? dead!.open(source, given) : fine!.open(source, given),
        })
      },
    },
  ],
}
