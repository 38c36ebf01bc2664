import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { scratch, start } from '../end-to-end/cli.ts'

/** A Python with these packages; few machines have one. */
const python = process.env.ESPALIER_PYTHON ?? 'python3'
const frameworks = [
  ['openai', 'openai'],
  ['langgraph', 'langgraph, langchain_openai'],
  ['pydantic-ai', 'pydantic_ai.models.openai'],
] as const
const has = (modules: string): boolean =>
  process.env.ESPALIER_SOAK !== undefined &&
  spawnSync(python, ['-c', `import ${modules}, httpx`]).status === 0

describe.each(frameworks)('an agent of %s', (framework, modules) => {
  const isHere = has(modules)
  if (!isHere) console.warn(`SKIPPED: no ESPALIER_PYTHON with ${modules} in a soak.`)
  it.runIf(isHere)(
    'learns through the gateway as it is',
    async () => {
      const words = ['train', '--gateway', '--policy', 'embedded', '--group', '8', '--steps', '8']
      const more = ['--tasks-per-step', '4', '--port', '0', '--out', 'run']
      const { child, finished } = start([...words, ...more], { folder: scratch() })
      const url = await new Promise<string>((resolve, reject) => {
        let told = ''
        const read = (part: Buffer): void => {
          told += part
          const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(told) ?? []
          if (found) resolve(found)
        }
        child.stdout!.on('data', read)
        child.stderr!.on('data', read)
        child.once('close', () => reject(new Error(told)))
      })
      const script = join(import.meta.dirname, '../python/gateway_learn.py')
      const { stdout } = await promisify(execFile)(python, [script, url, framework])
      expect(stdout).toMatch(/\d+ attempts; mean reward/)
      expect((await finished).code).toBe(0)
    },
    600_000,
  )
})
