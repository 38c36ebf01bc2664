import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Environment } from '../../src/base/core/environment.ts'
import type { Speaker, Speech } from '../../src/base/core/speaker.ts'
import { harbor } from '../../src/worlds/harbor/harbor.ts'
import { openPython } from '../../src/worlds/python-bridge/python.ts'
import { findWalls } from '../../src/worlds/sandboxes/walls.ts'
import { Tau2Domain } from '../../src/worlds/tau2/domain.ts'
import { tau2Environment } from '../../src/worlds/tau2/environment.ts'
import { modelUser } from '../../src/worlds/tau2/user.ts'
import { call } from '../rolling.ts'
import type { Closing, KindOfWorld, Meeting } from './contract.ts'
import { clock, flood } from './own.ts'

// ---- Worlds in Python

/** Both worlds are in one process; the policy's action says how the bad one is bad. */
const python =
  (action: number, seconds = 60) =>
  async (closing: Closing): Promise<Meeting> => {
    const before = process.env.PYTHONPATH
    process.env.PYTHONPATH = resolve('test/fixtures')
    closing.push(() => {
      if (before === undefined) delete process.env.PYTHONPATH
      else process.env.PYTHONPATH = before
    })
    const made = await openPython({
      package: 'bridge_games:Count',
      arguments: { wins: 1 },
      processes: 1,
      seconds,
    })
    const environment = made as Environment
    closing.push(() => environment[Symbol.asyncDispose]?.())
    const [bad, good] = environment.makeTasks!({ count: 2, seed: 1 }).map(
      ({ data }) => data as object,
    ) as [object, object]
    const act = (number: number) => [call('act', { action: number })]
    return { environment, bad, good, says: { bad: act(action), good: act(0) } }
  }

export const pythonPackages: KindOfWorld = {
  kind: 'a world in Python',
  boundary: 'environment',
  isHere: spawnSync('python3', ['--version']).status === 0,
  cannot: { 'answers out of turn': 'what a package prints goes nowhere near the answers' },
  cases: [
    { badness: 'hangs', reason: /no answer to step within 1 seconds/, meet: python(1, 1) },
    { badness: 'dies', reason: /its process ended \(3\)/, meet: python(2) },
    {
      badness: 'dies',
      how: 'throws',
      reason: /failed at step: ValueError: no such door/,
      meet: python(3),
    },
    {
      badness: 'lies',
      reason: /failed at step: ValueError: Out of range float/,
      meet: python(5),
    },
    { badness: 'floods', reason: /answered more than 16777216 characters/, meet: python(6) },
  ],
}

// ---- Tests of a task folder

/** Two task folders: the tests of one give what they should, those of the other run `script`. */
const folders =
  (script: string, seconds = 60) =>
  (closing: Closing): Meeting => {
    const folder = mkdtempSync(join(tmpdir(), 'bad-folders-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    for (const name of ['bad', 'good']) {
      cpSync('test/fixtures/task-folders/greet', join(folder, name), { recursive: true })
      const toml = `version = "1.0"\n[verifier]\ntimeout_sec = ${seconds}\n`
      if (name === 'bad') writeFileSync(join(folder, name, 'task.toml'), toml)
      const tests = name === 'bad' ? script : 'echo 1 > /logs/verifier/reward.txt'
      writeFileSync(join(folder, name, 'tests/test.sh'), tests)
    }
    const environment = harbor(folder, { installs: 'skipped' }) as Environment
    const at = (name: string) => ({ folder: join(folder, name) })
    return {
      environment,
      bad: at('bad'),
      good: at('good'),
      says: { bad: ['done'], good: ['done'] },
    }
  }

export const taskFolders: KindOfWorld = {
  kind: 'tests of a task folder',
  boundary: 'environment',
  isHere: findWalls().by !== undefined,
  cannot: { 'answers out of turn': 'they are run once, at the end' },
  cases: [
    { badness: 'hangs', reason: /the tests of bad took over 1 s/, meet: folders('sleep 60', 1) },
    {
      badness: 'dies',
      reason: /wrote no reward; they printed: oh/,
      meet: folders('echo oh; exit 78'),
    },
    {
      badness: 'lies',
      reason: /wrote no reward/,
      meet: folders('echo much > /logs/verifier/reward.txt'),
    },
    {
      badness: 'lies',
      how: 'lacks what it needs, and says 0',
      reason: /need pytest-9, which is not there/,
      meet: folders('pytest-9\necho 0 > /logs/verifier/reward.txt'),
    },
    {
      badness: 'lies',
      how: 'lacks a user, and says 0',
      reason: /need the user nobody-9/,
      meet: folders('chown nobody-9 /tests/test.sh\necho 0 > /logs/verifier/reward.txt'),
    },
    { badness: 'floods', reason: /wrote no reward/, meet: folders('head -c 5000000 /dev/zero') },
  ],
}

// ---- A user of tau2-bench

let retail: Tau2Domain | undefined

/** A user whose words are bad where the customer wants order 1 cancelled. */
const user =
  (bad: () => unknown, options: Meeting['options'] = {}) =>
  (): Meeting => {
    retail ??= new Tau2Domain({ root: 'test/fixtures/tau2-checkout', domain: 'retail' })
    const speaker: Speaker = {
      name: 'user',
      async say(messages) {
        const isBad = String(messages[0]?.content).includes('Cancel order #1')
        const content = isBad ? await bad() : messages.length > 3 ? '###STOP###' : 'Order #2?'
        return {
          message: { role: 'assistant', content } as Speech['message'],
          finish: 'stop',
          usage: { prompt: 1, sampled: 1 },
        }
      },
    }
    const environment = tau2Environment({
      domain: retail,
      user: modelUser(speaker, { temperature: 0, retries: 1 }),
    }) as Environment
    const at = (id: string) => ({ split: 'base', id })
    const says = { bad: ['Hello.'], good: ['It is delivered.'] }
    const names = { bad: 'cancel', good: 'nothing' }
    return { environment, bad: at('cancel'), good: at('nothing'), says, options, names }
  }

export const simulatedUsers: KindOfWorld = {
  kind: 'a simulated user of tau2-bench',
  boundary: 'user',
  cannot: { 'answers out of turn': 'a user is asked, and gives one answer' },
  cases: [
    { badness: 'hangs', reason: 'aborted', meet: user(() => new Promise(() => {}), clock) },
    { badness: 'dies', reason: /hung up/, meet: user(() => Promise.reject(new Error('hung up'))) },
    {
      badness: 'lies',
      how: 'says nothing',
      reason: /neither said nor did/,
      meet: user(() => null),
    },
    {
      badness: 'lies',
      how: 'says no text',
      reason: /is not a function|not a text/,
      meet: user(() => 4),
    },
    {
      badness: 'floods',
      boundary: 'environment',
      reason: /said \d+ characters at one time/,
      meet: user(() => flood),
    },
  ],
}
