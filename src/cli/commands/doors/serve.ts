import { once } from 'node:events'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { serveModel } from '../../../doors/gateway/serving/server.ts'
import { baseModel } from '../../../learn/model/embedded.ts'
import { type DeviceName, openModel } from '../../../learn/model/model.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { counted, doorFlags, readDoor } from '../../listening.ts'
import { findModel } from '../../named-model.ts'

/** Serves an embedded model over HTTP. */
export const serveCommand: Command = {
  name: 'serve',
  usage: '[--model DIR] [--port N]',
  about:
    "Speaks SGLang's /generate (ids in, ids and log-probabilities out, streaming, aborting, new\n" +
    "weights from disk), OpenAI's completions, and the dialects of agents: OpenAI's Chat Completions and\n" +
    "Responses, Anthropic's Messages, Google's generateContent. Requests at one time share the model's\n" +
    'steps. Rolling against it gives the same trajectories as rolling the model in process.',
  examples: [
    'espalier serve --port 30000',
    'espalier roll --policy sglang:http://127.0.0.1:30000 --environment desk --tasks 16',
  ],
  settings: [],
  own: {
    model: {
      help: 'The model: a folder, a training run, a GGUF file, hf:OWNER/NAME, or embedded for the base model of this package (default: embedded)',
      argument: 'DIR',
    },
    port: { help: 'The port; 0 takes any free one (default: 30000)', argument: 'N' },
    ...doorFlags,
    weights: {
      help: 'The folder that new weights may be taken from (default: the model folder)',
      argument: 'DIR',
    },
    name: { help: 'The name that clients may know the model by', argument: 'NAME' },
    device: { help: 'What computes: cpu, gpu or auto (default: cpu)', argument: 'KIND' },
    threads: { help: 'Threads of the model (default: as many as cores)', argument: 'N' },
  },
  positionalCount: [0, 0],
  run: runServe,
}

function readDevice(text = 'cpu'): DeviceName {
  if (text === 'cpu' || text === 'gpu' || text === 'auto') return text
  throw new MisuseError(`--device is cpu, gpu or auto, not "${text}"`)
}

async function runServe(invocation: Invocation): Promise<number> {
  const { own, json, terminal, signal } = invocation
  const { model: named = 'embedded', name, weights } = own
  const folder = await findModel(named)
  const { port = 30_000 } = counted('port', own.port)
  const device = readDevice(own.device)
  await using model = await openModel({ folder }, { ...counted('threads', own.threads), device })
  const options = {
    folder,
    port,
    ...readDoor(invocation),
    ...(weights !== undefined && { weightFolders: [weights] }),
    ...(name !== undefined && { name }),
  }
  await using server = await openNamed(`--port ${port}`, () => serveModel(model, options))
  const { url } = server
  if (json) terminal.print(JSON.stringify({ url, model: folder, kernel: model.kernel }))
  else terminal.print(`serving ${folder} at ${url}  (${model.device})`)
  // Only for the base model do we know the environment it was made for.
  const environment = folder === baseModel ? 'desk' : 'NAME'
  const roll = ['roll', '--policy', `sglang:${url}`, '--environment', environment, '--tasks', '16']
  terminal.tell(`next  ${commandLine(...roll)}`)
  if (!signal.aborted) await once(signal, 'abort')
  return 0
}
