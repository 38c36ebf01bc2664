// What llama.cpp computes of GGUF files that were exported: log-probabilities, by node-llama-cpp of another folder.
// `node real-model-llama-cpp.mjs FOLDER < spec.json`, FOLDER with node_modules/node-llama-cpp.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { ids, exports } = JSON.parse(readFileSync(0, 'utf8'))
const { resolve } = createRequire(join(process.argv[2], 'package.json'))
const { getLlama } = await import(pathToFileURL(resolve('node-llama-cpp')).href)
const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true })

async function scored(path) {
  const model = await llama.loadModel({ modelPath: path })
  const context = await model.createContext({
    contextSize: 256,
    flashAttention: false,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
  })
  const asked = {
    generateNext: { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } },
  }
  const found = await context.getSequence().controlledEvaluate(ids.map(id => [id, asked]))
  await model.dispose()
  return ids.slice(1).map((id, at) => Math.log(found[at].next.probabilities.get(id)))
}

const answers = []
for (const [name, path] of Object.entries(exports)) {
  if (path.endsWith('.gguf'))
    answers.push({ name: `${name} in llama.cpp`, logprobs: await scored(path) })
}
console.log(JSON.stringify(answers))
process.exit(0)
