// Checks report.html in a browser. It runs after the page's script, and writes the errors into the
// element "verdict". window.faults (browser.sh) has errors that were thrown before.
const wrong = window.faults;
const numbers = text => (text.match(/[\d.]+/g) || []).map(Number);

// Relative luminance and contrast by WCAG 2.1.
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const backgroundOf = element => {
  for (let e = element; e; e = e.parentElement) {
    const color = numbers(getComputedStyle(e).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const readable = (element, property, least) => {
  const ratio = contrast(numbers(getComputedStyle(element)[property]), backgroundOf(element));
  if (ratio < least) wrong.push(`contrast ${ratio.toFixed(2)} of "${element.textContent.slice(0, 20)}"`);
};

// Every chart has room, its curves are strokes of some length, and its read-out follows the
// pointer.
document.querySelectorAll('svg').forEach((svg, at) => {
  const room = svg.getBoundingClientRect(), lines = svg.querySelectorAll('.line');
  if (room.width < 150 || room.height < 80) wrong.push(`chart ${at} is ${room.width} × ${room.height}`);
  if (!lines.length) wrong.push(`chart ${at} has no curve`);
  lines.forEach(line => {
    const style = getComputedStyle(line), stroke = numbers(style.stroke);
    const dot = line.getAttribute('d').includes('h0');
    if (!(line.getTotalLength() > 0) && !dot) wrong.push(`chart ${at} has a curve of no length`);
    if (stroke.length < 3 || contrast(stroke, backgroundOf(svg)) < 2) wrong.push(`chart ${at} has a curve that cannot be seen`);
  });
  svg.querySelectorAll('text').forEach(text => readable(text, 'fill', 3));
  if (!svg.dataset.plot) return;
  svg.dispatchEvent(new PointerEvent('pointermove', {clientX: room.left + room.width / 2, clientY: room.top + 20}));
  if (!svg.querySelector('.read')) wrong.push(`chart ${at} does not tell its values`);
  svg.dispatchEvent(new PointerEvent('pointerleave'));
  if (svg.querySelector('.read')) wrong.push(`chart ${at} goes on telling its values`);
});
document.querySelectorAll('h1,h2,h3,p,dt,dd,th,td,li,footer').forEach(element => {
  if (element.textContent.trim()) readable(element, 'color', 3);
});

// The bar's parts fill it.
document.querySelectorAll('.bar').forEach(bar => {
  const parts = [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width + 2, -2);
  if (Math.abs(parts - bar.getBoundingClientRect().width) > 2) wrong.push(`the bar's parts have ${parts} px`);
});
const width = document.documentElement.scrollWidth;
if (width > window.innerWidth) wrong.push(`the page is ${width} px wide, the window ${window.innerWidth}`);

const verdict = document.createElement('pre');
verdict.id = 'verdict';
verdict.textContent = [`background ${getComputedStyle(document.body).backgroundColor}`,
  `charts ${document.querySelectorAll('svg').length}`, ...wrong.map(w => `wrong: ${w}`), 'looked'].join('\n');
document.body.append(verdict);
