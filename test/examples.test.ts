import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const folder = resolve(import.meta.dirname, '../examples')
const loader = resolve(import.meta.dirname, '../node_modules/tsx/dist/cli.mjs')
const examples = readdirSync(folder).filter(name => name.endsWith('.ts'))

interface Finished {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

function runExample(name: string): Promise<Finished> {
  const child = spawn(process.execPath, [loader, resolve(folder, name)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 90_000,
  })
  return new Promise((finish, reject) => {
    let output = ''
    let errors = ''
    child.stdout.on('data', chunk => (output += chunk))
    child.stderr.on('data', chunk => (errors += chunk))
    child.on('error', reject)
    child.on('close', code => finish({ code, output, errors }))
  })
}

/** All of them, two at a time: each waits for the one before the last. */
const finished: Promise<Finished>[] = []
for (const [index, name] of examples.entries()) {
  finished.push((finished[index - 2] ?? Promise.resolve()).then(() => runExample(name)))
}

describe('examples', () => {
  it.each(examples.map((name, index) => [name, index] as const))(
    '%s runs offline and has something to say',
    async (_, index) => {
      const { code, output, errors } = await finished[index]!
      expect(code, errors).toBe(0)
      expect(output.split('\n').length).toBeGreaterThan(3)
    },
    300_000,
  )
})
