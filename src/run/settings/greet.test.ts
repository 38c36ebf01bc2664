import { describe, expect, it } from 'vitest'
import { openServing } from '../../../test/servers/serving.ts'
import { greetServers } from './greet.ts'

const options = { keyVariable: 'MY_KEY' }

describe('greetServers', () => {
  it('asks whether a server is running that does not answer', async () => {
    const greeting = greetServers(['sglang:http://127.0.0.1:9'], options)
    await expect(greeting).rejects.toThrow(/nothing answers at sglang:.*:9\. Is it running\?/)
    const tinker = greetServers(['tinker:http://127.0.0.1:9?server=skyrl'], options)
    await expect(tinker).rejects.toThrow(/nothing answers at tinker:.*\. Is it running\?/)
    const named = greetServers(['openai:http://127.0.0.1:9/v1#some-model'], options)
    await expect(named).rejects.toThrow(
      'nothing answers at openai:http://127.0.0.1:9/v1#some-model. Is it running? (ECONNREFUSED)',
    )
  })

  it('names the variable of the key where the server wants one', async () => {
    const refuse = ({ response }: { response: import('node:http').ServerResponse }) =>
      void response.writeHead(401).end('{}')
    const others = { '/v1/models': refuse }
    await using server = await openServing({}, { generations: {}, others, tooLong: {} })
    for (const uri of [`vllm:${server.url}`, `openai:${server.url}/v1#some-model`]) {
      await expect(greetServers([uri], options)).rejects.toThrow('variable MY_KEY')
    }
  })

  it('lets whatever else answers be met by rolling, and leaves files alone', async () => {
    await using server = await openServing({}, { generations: {}, others: {}, tooLong: {} })
    await greetServers([`openai:${server.url}/v1`, 'scripted:absent.jsonl'], options)
  })
})
