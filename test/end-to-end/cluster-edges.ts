import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { folderOf } from '../../src/doors/cluster/local.ts'
import { until } from '../until.ts'
import { program, type Started, scratch, start } from './cli.ts'
import {
  finishedGroups,
  hasEnded,
  openShop,
  openTestServer,
  rollWords,
  rowsOf,
  startWorker,
  type TestServer,
} from './cluster.ts'

/** Hears whether something held, and what it was. */
export type Check = (isGood: boolean, line: string) => void

const [tasks, group] = [24, 4]

/** A worker whose template differs by one space makes nothing of a run, and others make it. */
export async function otherTemplate(server: TestServer, check: Check): Promise<void> {
  const folder = openShop(tasks)
  cpSync('models/chatml-bytes', join(folder, 'model'), { recursive: true })
  const other = scratch()
  cpSync(folder, other, { recursive: true })
  const template = join(other, 'model', 'chat_template.jinja')
  writeFileSync(template, readFileSync(template, 'utf8').replace('<|im_start|>', '<|im_start|> '))
  const words = (out: string) => [...rollWords(group, out), '--model', './model']
  await start(words('one'), { folder }).finished
  const strange = startWorker(server, other)
  const coordinator = startHere(server, folder, [...words('many'), '--cluster', server.address])
  const isTold = await heard(coordinator, 'does not take this run on')
  const good = startWorker(server, folder)
  const { code, stderr } = await coordinator.finished
  await stopped([strange, good])
  const isSame = (await rowsOf(folder, 'one')) === (await rowsOf(folder, 'many'))
  const why = /it is not the same here: [^;\n]*/.exec(stderr)?.[0]
  check(isTold && code === 0 && isSame, `a worker with another template takes nothing: ${why}`)
}

/** The disk of the database has no room for ten seconds: nobody leaves, and no attempt fails. */
export async function fullDatabase(check: Check): Promise<void> {
  const disk = folderOf(undefined)
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=192m', 'tmpfs', disk])
  try {
    await using server = await openTestServer(join(disk, 'server'))
    const folder = openShop(4 * tasks)
    await start(rollWords(group, 'one'), { folder }).finished
    const worker = startWorker(server, folder)
    const words = [...rollWords(group, 'many'), '--cluster', server.address]
    const coordinator = startHere(server, folder, words)
    await until(
      () => finishedGroups(join(folder, 'many')) > 4,
      () => hasEnded(coordinator),
    )
    const filler = join(disk, 'filler')
    fill(filler)
    await wait(10_000)
    rmSync(filler)
    // What PostgreSQL does without room for its own log is to end.
    await server.restart()
    const { code, stderr } = await coordinator.finished
    await stopped([worker])
    const isSame = (await rowsOf(folder, 'one')) === (await rowsOf(folder, 'many'))
    const waited = /the database [^;\n]*; waiting for it/.exec(stderr)?.[0] ?? 'it only stood still'
    check(code === 0 && isSame, `a full disk of the database is waited for: ${waited}`)
  } finally {
    execFileSync('umount', [disk])
    rmSync(disk, { recursive: true, force: true })
  }
}

function fill(path: string): void {
  try {
    for (const block = Buffer.alloc(64 << 10); ; ) appendFileSync(path, block)
  } catch {
    // There is no room left.
  }
}

/**
 * Coordinator and worker are pods: each the first process of namespaces of its own, under a host name that dies with
 * it. The worker drains on SIGTERM, the coordinator is killed and another pod resumes.
 */
export async function pods(server: TestServer, check: Check): Promise<void> {
  const folder = openShop(tasks)
  await start(rollWords(group, 'one'), { folder }).finished
  const cluster = ['--cluster', server.address]
  const work = ['worker', ...cluster, '--concurrency', '4', '--lease', '2']
  const [first, second] = [startPod(server, folder, 'worker-1', work), startWorker(server, folder)]
  const roll = [...rollWords(group, 'many'), ...cluster]
  const coordinator = startPod(server, folder, 'coordinator-1', roll)
  const done = (): number => finishedGroups(join(folder, 'many'))
  await until(
    () => done() > 3,
    () => hasEnded(coordinator),
  )
  const { pid } = first.child
  const [inside] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
  process.kill(Number(inside), 'SIGTERM')
  const drained = await first.finished
  check(drained.code === 0, 'a worker that is process 1 of its pod drains on SIGTERM')
  coordinator.child.kill('SIGKILL')
  await coordinator.finished
  const began = performance.now()
  const resumed = startPod(server, folder, 'coordinator-2', ['resume', 'many', ...cluster])
  const { code } = await resumed.finished
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  await stopped([second])
  const isSame = (await rowsOf(folder, 'one')) === (await rowsOf(folder, 'many'))
  check(
    code === 0 && isSame,
    `a killed pod's run is resumed by a pod of another name in ${seconds} s`,
  )
}

function startPod(
  { variables }: TestServer,
  folder: string,
  name: string,
  words: readonly string[],
): Started {
  const shell = ['sh', '-c', `hostname ${name}; exec "$@"`, '-', process.execPath, program]
  const namespaces = ['--uts', '--pid', '--fork', '--kill-child']
  const env = { ...process.env, ...variables }
  const child = spawn('unshare', [...namespaces, ...shell, ...words], { cwd: folder, env })
  const finished = once(child, 'close').then(([code]) => ({ code, stdout: '', stderr: '' }))
  return { child, finished }
}

function startHere({ variables }: TestServer, folder: string, words: readonly string[]): Started {
  return start(words, { folder, variables })
}

/** Resolves when a program has said this, or has ended without. */
async function heard(started: Started, words: string): Promise<boolean> {
  let said = ''
  started.child.stderr?.on('data', chunk => (said += chunk))
  return await until(
    () => said.includes(words),
    () => hasEnded(started),
  )
}

async function stopped(programs: readonly Started[]): Promise<void> {
  for (const { child } of programs) child.kill('SIGTERM')
  await Promise.all(programs.map(({ finished }) => finished))
}
