// AI SDK: `ToolLoopAgent`, with its messages in a file that the application writes after each turn.

import fs from 'node:fs';
import { isStepCount, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';

const [verb, run, rest] = process.argv.slice(2);
const times = Number(rest ?? 1);
const [payment, cents] = ['pay_1', 4200];
const kept = `${process.env.DATA}/${run}.messages.json`;
const say = line => console.log(JSON.stringify(line));
const report = (kind, text) => say({ report: kind, text: String(text).replace(/\s+/g, ' ') });

let made = 0;
let read = 0;
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const parts = prompt.flatMap(message => (message.role === 'tool' ? message.content : []));
    const results = parts.filter(part => part.type === 'tool-result').map(part => part.output);
    for (const output of results.slice(read)) {
      const text = typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
      report(output.type.startsWith('error') ? 'error' : 'ok', text);
    }
    read = results.length;
    if (results.length >= times) {
      return { content: [{ type: 'text', text: 'Done.' }], finishReason: { unified: 'stop' }, usage, warnings: [] };
    }
    made += 1;
    const input = JSON.stringify({ payment_id: payment, cents });
    const call = { type: 'tool-call', toolCallId: `call_${process.pid}_${made}`, toolName: 'pay', input };
    return { content: [call], finishReason: { unified: 'tool-calls' }, usage, warnings: [] };
  },
});

const agent = new ToolLoopAgent({
  model,
  stopWhen: isStepCount(20),
  tools: {
    pay: tool({
      description: 'Refunds a payment.',
      inputSchema: z.object({ payment_id: z.string(), cents: z.number() }),
      execute: async body => {
        const response = await fetch(`${process.env.WORLD}/refund`, { method: 'POST', body: JSON.stringify(body) });
        return `refunded ${(await response.json()).refunded} cents`;
      },
    }),
  },
  toolApproval: verb === 'wait' || verb === 'decide' ? { pay: 'user-approval' } : undefined,
});

const messages = fs.existsSync(kept)
  ? JSON.parse(fs.readFileSync(kept, 'utf8'))
  : [{ role: 'user', content: `Refund ${cents} cents of ${payment}.` }];
// The message of the user is kept before the turn begins, and the turn after it has ended.
const keep = () => fs.writeFileSync(kept, JSON.stringify(messages));
keep();
if (verb === 'decide') {
  const parts = messages.flatMap(message => (Array.isArray(message.content) ? message.content : []));
  const asked = parts.find(part => part.type === 'tool-approval-request');
  const response = { type: 'tool-approval-response', approvalId: asked.approvalId, approved: true };
  messages.push({ role: 'tool', content: [response] });
  read = parts.filter(part => part.type === 'tool-result').length;
}
try {
  const result = await agent.generate({ messages });
  messages.push(...result.responseMessages);
  keep();
  if (result.content.some(part => part.type === 'tool-approval-request')) report('waits', 'tool-approval-request');
} catch (error) {
  report('refused', `${error.name}: ${error.message}`);
}
