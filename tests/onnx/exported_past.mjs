// Runs a gpt that was exported with --with_past in onnxruntime, and compares with `belfry predict` and with the same
// graph without kept tokens. exported.sh calls it. Two texts run as one batch, of which the first begins later: its
// places before are masked. Prints the largest difference of a logit, and of a probability; exits with 1 above 1e-4.
// usage: ORT=… node exported_past.mjs EXPORT TOKENS.bin PREDICTED.csv
import { createRequire } from 'node:module';
import fs from 'node:fs';
const require = createRequire((process.env.ORT ?? '.') + '/node_modules/');
const ort = require('onnxruntime-node');
const [folder, tokens, predicted] = process.argv.slice(2);
const signature = JSON.parse(fs.readFileSync(`${folder}/signature.json`));
const ids = [...new Uint16Array(new Uint8Array(fs.readFileSync(tokens)).buffer)].map(BigInt);
const want = fs.readFileSync(predicted, 'utf8').trim().split('\n')[0].split(',').slice(1).map(Number);
const session = await ort.InferenceSession.create(`${folder}/model.onnx`, { intraOpNumThreads: 1, logSeverityLevel: 3 });
const past = signature.inputs.filter(i => i.name.startsWith('past_key_values.'));
const vocabulary = signature.outputs.find(o => o.name === 'logits').shape[2];

const i64 = (list, shape) => new ort.Tensor('int64', BigInt64Array.from(list), shape);

// Adds `added`, a list of tokens for each text, to the kept ones. The first text has `late` masked places.
async function run(kept, added, late) {
  const n = added.length, t = added[0].length, total = kept.count + t;
  const places = added.flatMap((_, i) => added[i].map((_, k) => BigInt(Math.max(0, kept.count + k - (i === 0 ? late : 0)))));
  const mask = added.flatMap((_, i) => Array.from({ length: total }, (_, k) => BigInt(i > 0 || k >= late)));
  const feeds = { input_ids: i64(added.flat(), [n, t]), position_ids: i64(places, [n, t]), attention_mask: i64(mask, [n, total]) };
  for (const p of past) {
    const [, heads, , width] = p.shape;
    feeds[p.name] = kept[p.name] ?? new ort.Tensor('float32', new Float32Array(0), [n, heads, 0, width]);
  }
  const results = await session.run(feeds), next = { count: total };
  for (const p of past) next[p.name] = results[p.name.replace('past_key_values', 'present')];
  return { kept: next, logits: results.logits.data };
}

const context = Number(process.env.CONTEXT), text = ids.slice(0, context), late = 3;
const whole = (await run({ count: 0 }, [text], 0)).logits;
const begun = [[...Array(late).fill(0n), ...text.slice(0, 5)], ids.slice(0, 5 + late)];
let { kept, logits } = await run({ count: 0 }, begun, late), most = 0;
for (let at = 4; ; at++) {
  const row = logits.length / 2 / vocabulary - 1; // the last one of the first text
  for (let v = 0; v < vocabulary; v++) most = Math.max(most, Math.abs(logits[row * vocabulary + v] - whole[at * vocabulary + v]));
  if (at + 1 === context - late) break; // learned positions end there for the second text
  ({ kept, logits } = await run(kept, [[text[at + 1]], [ids[at + 1 + late]]], late));
}
const last = [...whole.slice((context - 1) * vocabulary)], top = Math.max(...last);
const sum = last.reduce((s, x) => s + Math.exp(x - top), 0);
const probability = Math.max(...last.map((x, i) => Math.abs(Math.exp(x - top) / sum - want[i])));
console.log(`${folder}: step by step a logit differs by ${most}, a probability from that of predict by ${probability}`);
process.exit(most <= 1e-4 && probability <= 1e-4 && want.length === vocabulary ? 0 : 1);
