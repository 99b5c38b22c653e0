// Runs an exported model in onnxruntime on rows of a CSV file and compares with the output of
// `belfry predict`. exported.sh calls it. Prints the largest difference; exits with 1 above 1e-5.
// usage: ORT=… node exported.mjs EXPORT DATA.csv PREDICTED.csv
import { createRequire } from 'node:module';
import fs from 'node:fs';
const require = createRequire((process.env.ORT ?? '.') + '/node_modules/');
const ort = require('onnxruntime-node');
const [folder, data, predicted] = process.argv.slice(2);

const signature = JSON.parse(fs.readFileSync(`${folder}/signature.json`));
const lines = fs.readFileSync(data, 'utf8').trim().split('\n').map(line => line.split(','));
const rows = lines.slice(1), place = name => lines[0].indexOf(name);

const missing = ['', 'NA', 'N/A', 'nan', '?', '.'];

// Converts cells to the input's form. Ids are places among keys, which only Belfry can compute from
// texts.
function feed(input) {
  const shape = input.shape.map(d => d === 'N' ? rows.length : d);
  const cells = rows.map(r => r[place(input.name)]);
  if (input.kind === 'number') {
    return new ort.Tensor('float64', Float64Array.from(cells.map(c => missing.includes(c) ? NaN : Number(c))), shape);
  }
  if (input.kind === 'category') {
    const number = c => missing.includes(c) && input.missing ? input.values.length : input.values.indexOf(c);
    return new ort.Tensor('int64', BigInt64Array.from(cells.map(c => BigInt(number(c)))), shape);
  }
  const text = /name: "([^"]*)", kind: tokens/.exec(signature.table ?? '');
  if (text !== null) { // by --tokenizer bytes
    const most = signature.inputs.find(i => i.name === 'tokens').shape[1];
    const bytes = rows.map(r => [...Buffer.from(r[place(text[1])])].slice(0, most));
    const numbers = input.name === 'length' ? bytes.map(b => b.length)
                                            : bytes.flatMap(b => [...b, ...Array(most - b.length).fill(0)]);
    return new ort.Tensor('int64', BigInt64Array.from(numbers.map(n => BigInt(n))), shape);
  }
  if (input.name === 'x') {
    const columns = signature.columns.columns.map(place);
    return new ort.Tensor('float32', Float32Array.from(rows.flatMap(r => columns.map(c => Number(r[c])))), shape);
  }
  throw new Error(`${input.name}: it is made of texts`);
}

const session = await ort.InferenceSession.create(`${folder}/model.onnx`, { intraOpNumThreads: 1, logSeverityLevel: 3 });
const feeds = Object.fromEntries(signature.inputs.map(i => [i.name, feed(i)]));
const results = await session.run(feeds);
const got = results[signature.outputs[0].name].data;
// The answers of a table have a header, with a column for each class.
const written = fs.readFileSync(predicted, 'utf8').trim().split('\n').map(line => line.split(','));
const header = signature.table ? written.shift() : written[0].map((_, i) => i === 0 ? 'class' : `p_${i}`);
const columns = header.map((h, i) => h.startsWith('p_') || header.length === 1 ? i : -1).filter(i => i >= 0);
const want = written.flatMap(line => (columns.length > 0 ? columns : [header.length - 1]).map(c => Number(line[c])));
let most = got.length === want.length ? 0 : Infinity;
for (let i = 0; i < want.length; i++) most = Math.max(most, Math.abs(got[i] - want[i]) / Math.max(1, Math.abs(want[i])) || (got[i] === want[i] ? 0 : Infinity));
console.log(`${folder}: ${rows.length} rows, largest difference ${most}`);
process.exit(most <= 1e-5 ? 0 : 1);
