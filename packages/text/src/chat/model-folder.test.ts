import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readModelFolder } from './model-folder.ts'

let root = ''

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'espalier-folder-'))
})
afterAll(() => rm(root, { recursive: true }))

/** A folder with these files; what is not text is written as JSON. */
async function folderWith(name: string, files: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = join(root, name)
  for (const [file, content] of Object.entries({ 'tokenizer.json': {}, ...files })) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    await writeFile(join(folder, file), text)
  }
  return folder
}

describe('readModelFolder', () => {
  it('prefers a template in its own file', async () => {
    const folder = await folderWith('own', {
      'chat_template.jinja': 'own',
      'additional_chat_templates/tool_use.jinja': 'tools',
      'tokenizer_config.json': { chat_template: 'config', eos_token: '</s>' },
      'generation_config.json': { eos_token_id: [2, 3] },
    })
    expect(await readModelFolder(folder)).toEqual({
      name: 'own',
      tokenizer: {},
      config: { chat_template: 'config', eos_token: '</s>' },
      template: 'own',
      toolTemplate: 'tools',
      endIds: [2, 3],
    })
  })

  it('takes a template from the config, alone or by name', async () => {
    const one = await folderWith('one', { 'tokenizer_config.json': { chat_template: 'a' } })
    expect(await readModelFolder(one)).toMatchObject({ template: 'a', endIds: [] })
    const chat_template = [
      { name: 'default', template: 'a' },
      { name: 'tool_use', template: 'b' },
    ]
    const named = await folderWith('named', { 'tokenizer_config.json': { chat_template } })
    expect(await readModelFolder(named)).toMatchObject({ template: 'a', toolTemplate: 'b' })
    const separate = await folderWith('separate', {
      'chat_template.json': { chat_template: 'c' },
      'generation_config.json': { eos_token_id: 7 },
    })
    expect(await readModelFolder(separate)).toMatchObject({ template: 'c', endIds: [7] })
  })

  it('calls a snapshot by the id of its model', async () => {
    const name = 'models--Qwen--Qwen3-4B/snapshots/abc'
    const folder = await folderWith(name, { 'chat_template.jinja': 'a' })
    expect((await readModelFolder(folder)).name).toBe('Qwen/Qwen3-4B')
  })

  it('says what is missing or broken, and where', async () => {
    await expect(readModelFolder(join(root, 'none'))).rejects.toThrow('no folder')
    await expect(readModelFolder(root)).rejects.toThrow('has no tokenizer.json')
    await expect(readModelFolder(await folderWith('bare', {}))).rejects.toThrow(
      /bare has no chat template, neither/,
    )
    const broken = await folderWith('broken', { 'tokenizer_config.json': '{' })
    await expect(readModelFolder(broken)).rejects.toThrow(/tokenizer_config.json is not JSON/)
    const odd = await folderWith('odd', {
      'chat_template.jinja': 'a',
      'generation_config.json': { eos_token_id: ['</s>'] },
    })
    await expect(readModelFolder(odd)).rejects.toThrow('eos_token_id should be ids, but has "</s>"')
  })
})
