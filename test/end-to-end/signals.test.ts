import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { scratch, start } from './cli.ts'

const models = join(import.meta.dirname, '../../models')
const endless =
  '{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages }}'

/** Whether a process has its own answer to SIGTERM. */
function answers(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const caught = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)![1]}`)
  return (caught & (1n << 14n)) !== 0n
}

/** The processor time of a process, in ticks of a hundredth of a second. */
function ticks(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15)
  return Number(user) + Number(system)
}

/**
 * Waits until the loop is held by what does not end: half a second of processor time without an
 * answer. Loading the tokenizer lifts the answer too, but for a moment.
 */
async function isHeld(pid: number): Promise<void> {
  for (let answered = ticks(pid); ticks(pid) - answered < 50; await setImmediate())
    if (answers(pid)) answered = ticks(pid)
}

it.runIf(existsSync('/proc/self/status')).each(['SIGINT', 'SIGTERM'] as const)(
  'H6: %s ends the program in the midst of a template that takes its time',
  async signal => {
    const folder = scratch()
    cpSync(join(models, 'chatml-bytes'), join(folder, 'model'), { recursive: true })
    writeFileSync(join(folder, 'model', 'chat_template.jinja'), endless)
    const words = ['roll', '--model', 'model', '--environment', 'calculator', '--tasks', '1']
    const server = createServer((_, response) => response.end('{"data":[{"id":"m"}]}'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    words.push('--policy', `openai:${url}`, '--served-model', 'm', '--out', 'run')
    const asked = once(server, 'request')
    const { child, finished } = start(words, { folder })
    const ended = new Promise(resolve => child.once('exit', (_, name) => resolve(name)))
    await asked
    await isHeld(child.pid!)
    child.kill(signal)
    expect(await ended).toBe(signal)
    await finished
    server.close()
  },
)

it.runIf(existsSync('/proc/self/status'))(
  'H6: SIGINT ends the making of a large set of tasks, which never turns the loop',
  async () => {
    const folder = scratch()
    const words = ['tasks', 'make', '9000000', '--environment', 'calculator', '--out', 'all.jsonl']
    const { child, finished } = start(words, { folder })
    const ended = new Promise(resolve => child.once('exit', (_, name) => resolve(name)))
    await isHeld(child.pid!)
    child.kill('SIGINT')
    expect(await ended).toBe('SIGINT')
    await finished
    expect(existsSync(join(folder, 'all.jsonl'))).toBe(false)
  },
)
