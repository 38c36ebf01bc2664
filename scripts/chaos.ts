// Disturbs runs: `npm run chaos -- [kills|faults|disk|others|outage …] [--kills N] [--seed N] [--cluster [--rollouts N]]`.
// Kills at random moments, faults of the server, a full disk, a server that is away; each run is resumed to its end and
// compared with an undisturbed one.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { random, seedOf } from '../src/base/math/random.ts'
import { type Disturbance, openTrial, rollKilled } from '../test/end-to-end/chaos.ts'
import { espalier, program, start } from '../test/end-to-end/cli.ts'
import type { TestServer } from '../test/end-to-end/cluster.ts'
import type { Fault } from '../test/servers/serving.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    cluster: { type: 'boolean', default: false },
    rollouts: { type: 'string', default: '2000' },
  },
})
const wanted = Number(values.kills)
const seed = Number(values.seed)
let failures = 0

function check(isGood: boolean, line: string): void {
  if (!isGood) failures++
  console.log(`${isGood ? 'ok    ' : 'FAILED'}  ${line}`)
}

const strategies = [
  { words: [], width: 1 },
  { words: ['--strategy', 'tree', '--branch', 'fixed', '--leaves', '4'], width: 4 },
  { words: ['--strategy', 'step'], width: 1 },
]

async function kill(): Promise<void> {
  let kills = 0
  for (let round = 0; kills < wanted; round++) {
    const { words, width } = strategies[round % strategies.length]!
    const trial = { seed: seed + round, tasks: 30, group: 4, latency: 20, words }
    await using plain = await openTrial(trial)
    await espalier(...plain.words)
    await using killed = await openTrial(trial)
    const result = await rollKilled(killed, {
      seed: seed + round,
      kills: wanted - kills,
      apart: 30,
    })
    kills += result.kills
    const rows = await plain.rows()
    const isSame = rows === (await killed.rows())
    const again = killed.generations() - plain.generations()
    check(
      isSame && again <= result.kills * 8 * width,
      `round ${round} ${words[1] ?? 'chain'}: ${result.kills} kills, ${rows.split('\n').length - 1} rows equal to the undisturbed run's, ` +
        `${again} of ${plain.generations()} samples drawn again`,
    )
  }
  check(kills >= wanted, `${kills} kills in all`)
}

async function faults(): Promise<void> {
  const kinds: readonly Fault[] = ['reset', 'unavailable', 'hang', 'truncated', 'nan', 'html']
  const fault = (index: number) => (index % 5 === 2 ? kinds[((index / 5) % 6) | 0] : undefined)
  const trial = {
    seed,
    tasks: 60,
    group: 4,
    latency: 5,
    fault,
    words: ['--deadline', '1', '--json'],
  }
  await using faulty = await openTrial(trial)
  const { code, stdout } = await espalier(...faulty.words)
  const { trees, outcomes } = JSON.parse(stdout.trim().split('\n').at(-1)!)
  const { completed = 0, 'failed in policy': failed = 0 } = outcomes
  check(
    code === 0 && trees === 240 && completed + failed === 240 && failed > 0,
    `faults at every fifth answer: ${trees} attempts, ${completed} completed, ${failed} failed in policy, none elsewhere`,
  )
}

async function fullDisk(): Promise<void> {
  const trial = { seed, tasks: 30, group: 4, latency: 5 }
  await using plain = await openTrial(trial)
  await espalier(...plain.words)
  await using full = await openTrial(trial)
  let stops = 0
  for (let largestFile = 48; largestFile < 400; largestFile += 96) {
    const words = stops === 0 ? full.words : ['resume', full.run]
    const { code, stderr } = await start(words, { largestFile }).finished
    if (code === 1 && stderr.includes('cannot be written: the file-size limit is reached')) stops++
  }
  const last = await espalier('resume', full.run)
  check(
    last.code === 0 && stops > 1 && (await full.rows()) === (await plain.rows()),
    `stopped ${stops} times by a full disk with a clear error, then finished with the same rows`,
  )
}

/** A cassette on a full disk, a run in another namespace, and kills of what reads and scores. */
async function others(): Promise<void> {
  const trial = { seed, tasks: 30, group: 4, latency: 5 }
  await using plain = await openTrial(trial)
  await espalier(...plain.words)
  const cassette = join(plain.folder, 'cassette.jsonl')
  await using full = await openTrial({ ...trial, words: ['--record', cassette] })
  const stopped = await start(full.words, { largestFile: 8 }).finished
  const ended = await espalier('resume', full.run)
  check(
    stopped.stderr.includes('cassette.jsonl cannot be written') && ended.code === 0,
    'a cassette on a full disk stopped the run with that error, and it went on when there was room',
  )
  check((await full.rows()) === (await plain.rows()), 'its rows are those of the undisturbed run')
  await away()
  await readers(plain)
}

/** A writer in another PID namespace is neither doubled while it lives, nor waited for when it is gone. */
async function away(): Promise<void> {
  await using far = await openTrial({ seed, tasks: 30, group: 4, latency: 1000 })
  const wrapped = ['--pid', '--fork', '--kill-child', process.execPath, program, ...far.words]
  const child = spawn('unshare', wrapped, { stdio: 'ignore' })
  await far.reached(12)
  const beside = await espalier('resume', far.run)
  check(
    beside.code === 2 && beside.stderr.includes('it beats'),
    'a writer in another namespace is left alone',
  )
  child.kill('SIGKILL')
  const began = performance.now()
  const after = await espalier('resume', far.run)
  const seconds = (performance.now() - began) / 1000
  check(
    after.code === 0 && seconds > 30,
    `killed, its run was taken over in ${seconds.toFixed(0)} s`,
  )
  const { stdout } = await espalier('show', far.run, '--json')
  check(stdout.trim().split('\n').length === 30, 'with all of its groups, each once')
}

/** Kills of export, score and show: the run is as it was, and no half file stands where a whole one should. */
async function readers(plain: Disturbance): Promise<void> {
  const rows = await plain.rows()
  const next = random(seedOf('readers', seed))
  const out = join(plain.folder, 'killed.jsonl')
  let bad = 0
  for (let round = 0; round < Math.min(wanted, 30); round++) {
    const words = [
      ['export', plain.run, '--to', 'jsonl', '--out', out],
      ['score', plain.run, '--filter', 'equal-rewards'],
      ['show', plain.run],
    ][round % 3]!
    const { child, finished } = start(words)
    await Promise.race([wait(next() * 500), finished])
    child.kill('SIGKILL')
    await finished
    if (existsSync(out) && readFileSync(out, 'utf8').split('\n').length !== rows.split('\n').length)
      bad++
    if ((await espalier('export', plain.run, '--to', 'jsonl', '--out', out)).code !== 0) bad++
  }
  check(
    bad === 0,
    'killed again and again, export, score and show left a whole run and whole files',
  )
}

/** A server that is away for a while, for longer than `--outage`, and one that says that it is loading. */
async function outage(): Promise<void> {
  const trial = { seed, tasks: 30, group: 4, latency: 20 }
  await using plain = await openTrial(trial)
  await espalier(...plain.words)
  const rows = await plain.rows()
  for (const { about, limit, isStopped } of [
    { about: 'away for 3 s', limit: '60', isStopped: false },
    { about: 'away for longer than --outage 1', limit: '1', isStopped: true },
  ]) {
    await using trying = await openTrial({ ...trial, words: ['--outage', limit] })
    const { finished } = start(trying.words)
    await trying.reached(40)
    await trying.leave()
    if (isStopped) await finished
    else await wait(3000)
    await trying.comeBack()
    const first = await finished
    const last = isStopped ? await espalier('resume', trying.run) : first
    const again = trying.generations() - plain.generations()
    check(
      first.code === Number(isStopped) && last.code === 0 && first.stderr.includes('is away since'),
      `${about}: ${isStopped ? 'the run stopped with exit 1 and was resumed' : 'the run waited'}, and said so`,
    )
    check(
      (await trying.rows()) === rows && again <= 8,
      `its rows are those of the undisturbed run, ${again} samples drawn again`,
    )
  }
  const fault = (index: number) => (index >= 40 && index < 46 ? 'unavailable' : undefined)
  await using loading = await openTrial({ ...trial, fault })
  const { code, stderr } = await espalier(...loading.words)
  check(
    code === 0 && stderr.includes('is back after') && (await loading.rows()) === rows,
    'status 503 for a while is an absence too: no attempt failed',
  )
}

/** Four workers, killed in turn with their coordinator, over a database that restarts. */
async function cluster(): Promise<void> {
  const { disturbances, openShop, openTestServer, rollDisturbed, rollWords, rowsOf } = await import(
    '../test/end-to-end/cluster.ts'
  )
  const group = 8
  const tasks = Math.ceil(Number(values.rollouts) / group)
  const folder = openShop(tasks)
  await start(rollWords(group, 'one'), { folder }).finished
  await using server = await openTestServer()
  const round = ['worker', 'worker', 'coordinator', 'worker', 'database'] as const
  const kinds = Array.from({ length: Math.min(wanted, 20) }, (_, index) => round[index % 5]!)
  const plan = disturbances(seed, tasks, kinds)
  const words = rollWords(group, 'many')
  const started = performance.now()
  const many = await rollDisturbed(server, { folder, words, run: 'many', workers: 4, plan })
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  const isSame = (await rowsOf(folder, 'one')) === (await rowsOf(folder, 'many'))
  check(
    many.code === 0 && isSame && many.kills === kinds.length,
    `${tasks * group} rollouts on 4 workers in ${seconds} s: ${many.kills} kills of workers, coordinator and database, rows ${isSame ? 'equal to' : 'other than'} one process's`,
  )
  if (many.code !== 0) console.log(many.stderr)
  await edges(server)
}

/** What befell clusters of people besides kills: other files, a full disk, pods, many that wait for little. */
async function edges(server: TestServer): Promise<void> {
  const { fullDatabase, otherTemplate, pods } = await import('../test/end-to-end/cluster-edges.ts')
  const { whileIdle } = await import('../bench/cluster/idle.ts')
  await otherTemplate(server, check)
  await pods(server, check)
  await fullDatabase(check)
  const { claims, workers } = await whileIdle(server, 60)
  check(
    claims < 4,
    `an attempt that comes while ${workers} workers are idle costs ${claims} claims, not ${workers}`,
  )
}

const parts = { kills: kill, faults, disk: fullDisk, others, outage } as const
const strange = positionals.find(name => !Object.hasOwn(parts, name))
if (strange !== undefined) {
  console.error(`There is no trial "${strange}". Known: ${Object.keys(parts).join(', ')}.`)
  process.exit(2)
}
if (values.cluster) await cluster()
else {
  for (const [name, part] of Object.entries(parts)) {
    if (positionals.length === 0 || positionals.includes(name)) await part()
  }
}
console.log(failures === 0 ? 'nothing was lost, nothing was doubled' : `${failures} FAILED`)
process.exit(failures === 0 ? 0 : 1)
