import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
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

/** Waits until the answer is there, and then until it is lifted: the loop is held. */
async function isHeld(pid: number): Promise<void> {
  for (const wanted of [true, false]) while (answers(pid) !== wanted) await setImmediate()
}

it.runIf(existsSync('/proc/self/status')).each(['SIGINT', 'SIGTERM'] as const)(
  'H6: %s ends the program in the midst of a template that takes its time',
  async signal => {
    const folder = scratch()
    cpSync(join(models, 'chatml-bytes'), join(folder, 'model'), { recursive: true })
    writeFileSync(join(folder, 'model', 'chat_template.jinja'), endless)
    const words = ['roll', '--model', 'model', '--environment', 'calculator', '--tasks', '1']
    words.push('--policy', 'openai:http://127.0.0.1:9/v1', '--served-model', 'm', '--out', 'run')
    const { child, finished } = start(words, { folder })
    const ended = new Promise(resolve => child.once('exit', (_, name) => resolve(name)))
    await isHeld(child.pid!)
    child.kill(signal)
    expect(await ended).toBe(signal)
    await finished
  },
)
