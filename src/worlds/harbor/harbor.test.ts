import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeLanes } from '../../base/core/lane.ts'
import { playWorld } from '../../engine/environments/play.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { findWalls } from '../sandboxes/walls.ts'
import { readDockerfile } from './dockerfile.ts'
import { harbor, solveHarbor } from './harbor.ts'
import { findTaskFolders, readTaskFolder, readTopLevel } from './task-folder.ts'
import { faultOf } from './verify.ts'

const fixtures = 'test/fixtures/task-folders'
const { signal } = new AbortController()
const lanes = makeLanes({ policy: 1, tools: 4, environment: 4, reward: 1 })
const folder = mkdtempSync(join(tmpdir(), 'harbor-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('task folders', () => {
  it('are read in both layouts', () => {
    const [greet, lines] = findTaskFolders(fixtures).map(readTaskFolder)
    expect(greet).toMatchObject({
      name: 'greet',
      format: 'harbor',
      verifier: { seconds: 20, variables: { WANTED: 'Hello, Ada' } },
      wantsNetwork: false,
    })
    expect(lines).toMatchObject({
      name: 'lines',
      format: 'terminal-bench',
      instruction: 'Write the number of lines of /app/poem.txt\ninto /app/lines.txt.',
      verifier: { seconds: 20, variables: { TEST_DIR: '/tests' } },
    })
    expect(readTopLevel('a: "x y"\nb: >\n  one\n  two\nc: 3').get('b')).toBe('one two')
  })

  it('what is missing or wrong is said, with its file', () => {
    expect(() => findTaskFolders('none')).toThrow('there is no folder none')
    expect(() => findTaskFolders('src/base/core')).toThrow('task.toml and instruction.md')
    const broken = join(folder, 'broken')
    cpSync(join(fixtures, 'greet'), broken, { recursive: true })
    writeFileSync(join(broken, 'task.toml'), '[verifier]\ntimeout_sec = "long"')
    expect(() => readTaskFolder(broken)).toThrow(/task.toml: verifier.timeout_sec/)
  })

  it('a Dockerfile is followed as far as nothing has to be fetched', () => {
    const { steps, workingFolder, variables, skipped } = readDockerfile(
      join(fixtures, 'greet/environment'),
    )
    expect([workingFolder, variables]).toEqual(['/app', { GREETING: 'Hello' }])
    expect(steps.map(({ kind }) => kind)).toEqual(['copy', 'run'])
    expect(skipped.map(line => line.slice(0, 12))).toEqual(['FROM debian:', 'RUN apt-get '])
    const long = mkdtempSync(join(folder, 'long-'))
    writeFileSync(join(long, 'Dockerfile'), `ENV ${'A'.repeat(300_000)} b\nENV C=1 D="2 3"`)
    expect(readDockerfile(long).variables).toMatchObject({ C: '1', D: '2 3' })
  })
})

it.each([
  ["chown: invalid user: 'nobody'", 'need the user nobody'],
  ["id: 'nobody': no such user", 'need the user nobody'],
  ['su: user nobody does not exist or the user entry lacks fields', 'need the user nobody'],
  ['sudo: unknown user nobody', 'need the user nobody'],
  ["/usr/bin/env: 'uvx': No such file or directory", 'need uvx'],
  ['/tests/test.sh: line 3: uvx: command not found', 'need uvx'],
  ['/usr/bin/python3: No module named pytest', 'need pytest'],
  ['curl: (6) Could not resolve host: astral.sh', 'wanted to fetch astral.sh'],
  ['E: Unable to locate package curl', 'wanted to fetch curl'],
])('%s is a fault of the sandbox', (line, reason) => {
  expect(faultOf(`collected\n${line}\nFAILED\n`)).toContain(reason)
})

it('what a program of the policy lacks is its own affair', () => {
  expect(faultOf('/app/run.sh: line 1: frob: command not found\n')).toBeUndefined()
  expect(faultOf("ModuleNotFoundError: No module named 'solution'\n")).toBeUndefined()
})

describe.runIf(findWalls().by !== undefined)('task folders within walls', () => {
  it('their own solutions pass their tests', async () => {
    for (const each of findTaskFolders(fixtures)) {
      expect(await solveHarbor(each, { signal, installs: 'skipped' })).toMatchObject({ reward: 1 })
    }
  })

  it('a policy works in them and is judged by tests it never saw', async () => {
    const environment = harbor(fixtures, { installs: 'skipped' })
    const [task] = environment.makeTasks!({ count: 1, seed: 0 })
    await using world = await environment.open(task!, { signal, seed: 0, lanes })
    const command =
      'ls /tests; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; cat data/name.txt'
    const player = ({ turn }: { turn: number }) =>
      turn === 0 ? replyOf('', { tool: 'shell', input: { command } }) : replyOf('done')
    const play = await playWorld(world, task!, { player, turns: 2, signal })
    expect(play.calls[0]?.output).toContain("cannot access '/tests'")
    expect(play.calls[0]?.output).toContain('Ada')
    expect(play.report).toMatchObject({ reward: 0 })
  })

  it('a Dockerfile that copies all of its folder shows neither tests nor solution', async () => {
    const whole = join(folder, 'whole')
    cpSync(join(fixtures, 'lines'), whole, { recursive: true })
    writeFileSync(join(whole, 'Dockerfile'), 'FROM a\nWORKDIR /app\nCOPY . .\n')
    const environment = harbor(whole)
    const [task] = environment.makeTasks!({ count: 1, seed: 0 })
    await using world = await environment.open(task!, { signal, seed: 0, lanes })
    const player = () => replyOf('', { tool: 'list_files', input: {} })
    const play = await playWorld(world, task!, { player, turns: 1, signal })
    expect(play.calls[0]?.output).toBe('./Dockerfile\n./poem.txt\n')
    expect(await solveHarbor(whole, { signal })).toMatchObject({ reward: 1 })
  })

  it('what a Dockerfile installs is refused, and what tests lack takes nothing from those who pass', async () => {
    const lacking = join(folder, 'lacking')
    cpSync(join(fixtures, 'greet'), lacking, { recursive: true })
    await expect(solveHarbor(lacking, { signal })).rejects.toThrow('installs=skipped')
    const one = 'id nobody-9\necho 1 > /logs/verifier/reward.txt'
    writeFileSync(join(lacking, 'tests/test.sh'), one)
    expect(await solveHarbor(lacking, { signal, installs: 'skipped' })).toMatchObject({ reward: 1 })
  })
})
